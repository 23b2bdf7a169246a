"""Truncations beside all that holds on to a log's files: flushes, moves, compaction, deletion; what the disk
says of them before and after.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch, decode_records, iter_batches
from logd.broker.broker import Broker
from logd.broker.partition.partition import Partition
from logd.config.load import from_properties
from logd.storage.checkpoints import read_offsets
from logd.storage.cleaner.swap import Swap
from logd.storage.jobs import Flush
from logd.storage.log.truncation import Truncation
from logd.storage.testing import FaultyDisk
from tests.logd.broker.roles import FakeRole, Waiter, turns
from tests.support.waiting import SECONDS, until

NOW = 1_700_000_000_000
QUICK = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "log.segment.delete.delay.ms": "20",
    "log.segment.bytes": "3000",
    "log.index.interval.bytes": "100",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


class Gate:
    """A gate that lets a method run only once it is open; `reached` is set when a thread waits at it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()
        original: Callable[..., object] = getattr(owner, method)

        def gated(*arguments: object) -> object:
            self.reached.set()
            assert self._opened.wait(SECONDS)
            return original(*arguments)

        monkeypatch.setattr(owner, method, gated)

    async def someone(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, SECONDS)

    def open(self) -> None:
        self._opened.set()


@asynccontextmanager
async def running(path: Path, disk: FaultyDisk | None = None, **settings: str) -> AsyncIterator[Broker]:
    overrides = {key.replace("_", "."): value for key, value in settings.items()}
    config = from_properties({"log.dirs": str(path / "a"), **QUICK, **overrides}).config
    broker = Broker(config, disk=disk)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def fill(partition: Partition, count: int, *, key: bytes = b"k", first: int = 0) -> None:
    """Append records in batches of one, with their numbers as values."""
    for number in range(first, first + count):
        value = b"%d:".ljust(200, b"x") % number
        partition.append(build_batch([(NOW + number, key, value, ())]), NOW + number)


def numbers_in(partition: Partition) -> list[int]:
    """Return the numbers in the records."""
    numbers = []
    for chunk in partition.read_all():
        for position, _ in iter_batches(chunk):
            for _, _, _, value, _ in decode_records(chunk, position):
                assert value is not None
                numbers.append(int(value.split(b":")[0]))
    return numbers


def on_disk(partition: Partition, name: str) -> int | None:
    return read_offsets(partition.directory.path / name).get(partition.tp)


def test_what_is_truncated_is_gone_and_what_comes_then_stays(tmp_path: Path) -> None:
    async def first() -> None:
        async with running(tmp_path) as broker:
            partition = (await broker.catalog.create("t", 1, {})).partition(0)
            fill(partition, 40)
            consumer = Waiter(partition, follower=False)
            await broker.truncations.truncate(partition, 17)
            assert partition.high_watermark == partition.log_end_offset == 17
            assert consumer.woken and numbers_in(partition) == list(range(17))
            recovery_point = on_disk(partition, "recovery-point-offset-checkpoint")
            assert recovery_point is not None and recovery_point <= 17
            assert (on_disk(partition, "replication-offset-checkpoint") or 0) <= 17
            fill(partition, 20, first=100)
            assert partition.high_watermark == 37
            await broker.truncations.truncate(partition, 37)
            await broker.truncations.truncate(partition, 99)
            assert partition.log_end_offset == 37, "there is nothing behind the end"
            assert broker.truncations.statistics()["truncations"] == 0

    async def again() -> None:
        async with running(tmp_path) as broker:
            partition = broker.catalog.partitions["t", 0]
            assert numbers_in(partition) == [*range(17), *range(100, 120)]
            fill(partition, 1, first=900)

    asyncio.run(first())
    asyncio.run(again())


async def test_beginning_afresh(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 20)
        await broker.truncations.begin_afresh(partition, 500)
        assert (partition.log_start_offset, partition.high_watermark, partition.log_end_offset) == (500,) * 3
        assert on_disk(partition, "log-start-offset-checkpoint") == 500
        assert partition.read(500, 1) is None and numbers_in(partition) == []
        fill(partition, 3)
        await broker.truncations.begin_afresh(partition, 7)
        fill(partition, 2)
        assert (partition.log_start_offset, partition.high_watermark) == (7, 9)


async def test_a_log_that_never_was_written_begins_afresh(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        await broker.truncations.begin_afresh(partition, 9)
        fill(partition, 2)
        assert partition.log_end_offset == 11


async def test_an_epoch_without_a_record_goes(tmp_path: Path) -> None:
    """Epochs without a record are removed.

    The story: a leader was elected and wrote nothing, then another one was elected, whose epoch begins at the
    same offset.
    """
    async with running(tmp_path) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 3)
        partition.log.begin_epoch(8)
        assert partition.log.latest_epoch == 8
        await broker.truncations.truncate(partition, 3)
        assert partition.log.latest_epoch == 0


async def test_a_flush_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 30)
        gate = Gate(monkeypatch, Flush, "run")
        flushing = asyncio.create_task(broker.housekeeping.flush_all())
        await gate.someone()
        truncating = asyncio.create_task(broker.truncations.truncate(partition, 11))
        await turns()
        assert partition.log_end_offset == 30 and not truncating.done()
        gate.open()
        await asyncio.gather(flushing, truncating)
        assert numbers_in(partition) == list(range(11))
        assert partition.log.recovery_point == partition.log.flusher.synced_offset == 11


async def test_nobody_reads_or_writes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 30)
        gate = Gate(monkeypatch, Truncation, "run")
        truncating = asyncio.create_task(broker.truncations.truncate(partition, 11))
        await gate.someone()
        for attempt in (lambda: fill(partition, 1), lambda: numbers_in(partition)):
            with pytest.raises(KafkaError, match="is being truncated") as caught:
                attempt()
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not partition.is_offline
        await broker.housekeeping.write_checkpoints()
        recovery_point = on_disk(partition, "recovery-point-offset-checkpoint")
        assert recovery_point is not None and recovery_point <= 11, "nobody else may say more either"
        assert (on_disk(partition, "replication-offset-checkpoint") or 0) <= 11
        truncating.cancel()
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await truncating
        assert numbers_in(partition) == list(range(11)), "it is not left half done"


async def test_a_compaction_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, Swap, "prepare")
    async with running(tmp_path, millstream_flush_interval_ms="30") as broker:
        partition = (await broker.catalog.create("t", 1, COMPACTED)).partition(0)
        fill(partition, 100)
        await gate.someone()
        truncating = asyncio.create_task(broker.truncations.truncate(partition, 5))
        await turns()
        assert not truncating.done() and partition.log_end_offset == 100
        gate.open()
        await truncating
        assert partition.log_end_offset <= 5
        assert set(numbers_in(partition)) <= set(range(5))
        fill(partition, 60, first=1000)
        await until(lambda: len(numbers_in(partition)) < 40)
        assert numbers_in(partition)[-1] == 1059, "what is compacted now is the new end"


async def test_what_is_cut_is_not_clean_any_more(tmp_path: Path) -> None:
    async with running(tmp_path, millstream_flush_interval_ms="30") as broker:
        partition = (await broker.catalog.create("t", 1, COMPACTED)).partition(0)
        fill(partition, 100)
        await until(lambda: (on_disk(partition, "cleaner-offset-checkpoint") or 0) > 40)
        await broker.truncations.truncate(partition, 40)
        assert (on_disk(partition, "cleaner-offset-checkpoint") or 0) <= 40


async def test_a_move_is_under_way(tmp_path: Path) -> None:
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    slowly = {"replica.alter.log.dirs.io.max.bytes.per.second": "1"}
    async with running(tmp_path, **{"log.dirs": folders, **slowly}) as broker:
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 60)
        before = partition.directory
        (target,) = [folder for folder in broker.directories if folder is not before]
        await broker.moves.alter(partition, target)
        future = broker.moves.futures[partition.tp]
        await until(lambda: future.size)
        await broker.truncations.truncate(partition, 25)
        assert partition.directory is before and numbers_in(partition) == list(range(25))
        again = broker.moves.futures[partition.tp]
        assert again is not future and again.target is target
        fill(partition, 5, first=200)
        await broker.change_configs(
            "", lambda configs: {**configs, **dict.fromkeys(slowly, "1000000000")}, validate_only=False
        )
        await until(lambda: partition.directory is target)
        assert numbers_in(partition) == [*range(25), *range(200, 205)]
        await until(lambda: not list(before.path.glob("t-0*")))


async def test_the_topic_is_deleted_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.catalog.create("t", 1, {})
        fill(topic.partition(0), 30)
        gate = Gate(monkeypatch, Truncation, "run")
        truncating = asyncio.create_task(broker.truncations.truncate(topic.partition(0), 11))
        await gate.someone()
        await broker.delete_topic(topic)
        partition = (await broker.catalog.create("t", 1, {})).partition(0)
        fill(partition, 20, first=50)
        gate.open()
        await truncating
        assert numbers_in(partition) == list(range(50, 70))
        assert not broker.directories[0].failure


def test_the_disk_fails(tmp_path: Path) -> None:
    disk = FaultyDisk()

    async def work() -> None:
        async with running(tmp_path, disk) as broker:
            partition = (await broker.catalog.create("t", 1, {})).partition(0)
            fill(partition, 30)
            disk.failing, disk.suffix = {"truncate"}, ".log"
            with pytest.raises(KafkaError) as caught:
                await broker.truncations.truncate(partition, 8)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            assert partition.is_offline and "truncating t-0" in (partition.directory.failure or "")
            disk.failing = set()

    async def again() -> None:
        async with running(tmp_path) as broker:
            partition = broker.catalog.partitions["t", 0]
            left = numbers_in(partition)
            assert left == list(range(len(left))) and 8 <= len(left) <= 30

    asyncio.run(work())
    asyncio.run(again())


async def test_many_share_their_checkpoints(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with running(tmp_path, disk) as broker:
        topic = await broker.catalog.create("t", 40, {})
        partitions = [topic.partition(index) for index in range(40)]
        for partition in partitions:
            fill(partition, 3)
        disk.done.clear()
        await asyncio.gather(*(broker.truncations.truncate(each, 1) for each in partitions))
        assert all(numbers_in(partition) == [0] for partition in partitions)
        written = disk.done.count(("rename", "recovery-point-offset-checkpoint.tmp"))
        assert 0 < written <= 20, "not one for each"


def test_high_watermarks_are_written_by_the_clock_where_there_are_several_replicas(tmp_path: Path) -> None:
    async def work() -> None:
        settings = {"replica.high.watermark.checkpoint.interval.ms": "20"}
        async with running(tmp_path, **settings) as broker:
            topic = await broker.catalog.create("t", 2, {})
            partition, alone = topic.partition(0), topic.partition(1)
            fill(alone, 5)
            await broker.housekeeping.write_high_watermarks()
            assert on_disk(alone, "replication-offset-checkpoint") is None, "nobody needs it"
            partition.take_role(role := FakeRole())
            fill(partition, 9)
            role.high_watermark = 6
            partition.advance_high_watermark()
            await until(lambda: on_disk(partition, "replication-offset-checkpoint") == 6)
            assert on_disk(alone, "replication-offset-checkpoint") == 5

    async def again() -> None:
        async with running(tmp_path) as broker:
            partition = broker.catalog.partitions["t", 0]
            assert partition.checkpointed_high_watermark == 6
            assert partition.high_watermark == 9, "it is the only replica"

    asyncio.run(work())
    asyncio.run(again())
