"""Readable offsets of a partition whose appends wait for a flush: no record that a power loss could take.

The log is real; the thread pool works when the test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client.errors import KafkaError
from kafka_client.records import build_batch, decode_records
from logd.broker.background.flusher import Flusher
from logd.broker.partition.partition import Partition
from logd.config.topic import TopicConfig
from logd.storage import Appended, LogDirectory
from logd.storage.disk import read_slice
from logd.storage.testing import FaultyDisk

NOW = 1_700_000_000_000
PRODUCER = 9


class Bench:
    """A partition; `woken` counts how often its waiters were woken, `started` are the jobs that wait."""

    def __init__(self, folder: LogDirectory, disk: FaultyDisk, **configs: str) -> None:
        self.disk = disk
        self.woken = 0
        self.started: list[asyncio.Event] = []
        self.flusher = Flusher(self._run, 1 << 30)
        config = TopicConfig().overridden(configs)
        log = folder.create_log("t", 0, topic_id=bytes(16), config=config, now_ms=NOW)
        self.partition = Partition(log, folder, bytes(16), config, self.flusher)
        self.partition.waiters.add(self)
        self.last_bounds = 0, 0
        self._sequence = 0

    def on_append(self) -> None:
        """See `AppendWaiter`."""
        self.woken += 1
        self.partition.waiters.add(self)

    async def _run(self, job: Callable[[], None]) -> None:
        go = asyncio.Event()
        self.started.append(go)
        await go.wait()
        job()

    async def release(self, index: int = 0) -> None:
        """Run the first job in the pool."""
        self.started.pop(index).set()
        await turns()

    def produce(self, now_ms: int = NOW, *, transactional: bool = False) -> Appended:
        batch = build_batch(
            [(NOW, None, b"v", ())],
            producer_id=PRODUCER if transactional else -1,
            producer_epoch=0 if transactional else -1,
            base_sequence=self._sequence if transactional else -1,
            transactional=transactional,
        )
        self._sequence += transactional
        return self.partition.produce(memoryview(batch), now_ms, -1)

    def mark(self, *, commit: bool = True) -> Appended:
        return self.partition.append_marker(PRODUCER, 0, commit, 0, NOW)

    @property
    def bounds(self) -> tuple[int, int]:
        """Return last stable offset and high watermark, and check that they never go back."""
        bounds = self.partition.last_stable_offset, self.partition.high_watermark
        assert bounds >= self.last_bounds and bounds[1] >= self.last_bounds[1] and bounds[0] <= bounds[1]
        self.last_bounds = bounds
        return bounds

    def offsets(self) -> list[int]:
        """Return the offsets that a consumer reads."""
        piece = self.partition.read(0, 1 << 20)
        data = b"" if piece is None else read_slice(piece)
        offsets, position = [], 0
        while position < len(data):
            batch = decode_records(data, position)
            offsets += [record[0] for record in batch]
            position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        return offsets


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@contextmanager
def opened(path: Path, **configs: str) -> Iterator[Bench]:
    disk = FaultyDisk()
    folder = LogDirectory.open(
        path, node_id=1, cluster_id="c", config_for=lambda topic: TopicConfig(), now_ms=NOW, disk=disk
    )
    try:
        yield Bench(folder, disk, **{key.replace("_", "."): value for key, value in configs.items()})
    finally:
        folder.close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


def test_an_append_is_read_once_it_is_on_the_disk(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1") as bench:
            appended = bench.produce()
            assert bench.bounds == (0, 0) and bench.offsets() == [] and bench.woken == 0
            waiting = bench.partition.flushed(appended)
            assert waiting is not None
            await turns()
            bench.produce()
            await bench.release()
            await waiting
            assert bench.partition.flushed(appended) is None
            assert bench.bounds == (1, 1) and bench.offsets() == [0] and bench.woken == 1
            await bench.release()
            assert bench.bounds == (2, 2) and bench.woken == 2
            assert not bench.started

    run(work)


def test_without_flush_settings_appends_are_read_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path) as bench:
            assert bench.partition.flushed(bench.produce()) is None
            assert bench.bounds == (1, 1) and bench.woken == 1

    run(work)


def test_what_is_below_the_limit_is_read_at_once_unless_it_stands_behind_what_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="3") as bench:
            bench.produce(), bench.produce()
            assert bench.bounds == (2, 2)
            third = bench.produce()
            assert bench.bounds == (2, 2), "owed a flush"
            await turns()
            fourth = bench.produce()
            assert bench.bounds == (2, 2)
            waiting = bench.partition.flushed(fourth)
            assert waiting is not None, "else its producer would not find it"
            await bench.release()
            await waiting
            assert bench.partition.flushed(third) is None
            assert bench.bounds == (4, 4) and not bench.started, "one flush is enough"
            bench.produce()
            assert bench.bounds == (5, 5)
            bench.produce()
            assert bench.bounds == (5, 5)
            await turns()
            await bench.release()
            assert bench.bounds == (6, 6)

    run(work)


def test_flushes_beside_each_other_let_go_of_what_each_has_taken_along(tmp_path: Path) -> None:
    """Flushes at the same time release what each has synced: an acknowledgement's and the background's, in
    either order.
    """

    async def work() -> None:
        for first in (0, 1):
            with opened(tmp_path / str(first), flush_messages="1") as bench:
                bench.produce()
                await turns()
                bench.produce()
                background = asyncio.create_task(bench.flusher.flush_all())
                await turns()
                bench.produce()
                assert len(bench.started) == 2 and bench.bounds == (0, 0)
                await bench.release(first)
                assert bench.bounds == ((1, 1) if first == 0 else (2, 2))
                await bench.release()
                assert bench.bounds == (2, 2)
                await background
                await bench.release()
                assert bench.bounds == (3, 3)
                while bench.started:
                    await bench.release()

    run(work)


def test_a_transaction_is_stable_once_its_marker_is_on_the_disk(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1") as bench:
            bench.produce(transactional=True)
            assert bench.bounds == (0, 0), "not the transaction holds readers back, but the disk"
            await turns()
            await bench.release()
            assert bench.bounds == (0, 1)
            marker = bench.mark()
            assert bench.bounds == (0, 1)
            woken = bench.woken
            waiting = bench.partition.flushed(marker)
            assert waiting is not None
            await turns()
            bench.produce(transactional=True)
            await bench.release()
            await waiting
            assert bench.bounds == (2, 2) and bench.woken == woken + 1
            await bench.release()
            assert bench.bounds == (2, 3), "the next one has begun"
            bench.mark(commit=False)
            await turns()
            await bench.release()
            assert bench.bounds == (4, 4)

    run(work)


def test_flush_ms_holds_back_what_waits_for_it(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_ms="100") as bench:
            bench.produce()
            assert bench.bounds == (1, 1)
            late = bench.produce(NOW + 100)
            assert bench.bounds == (1, 1) and bench.partition.flushed(late) is not None
            await turns()
            await bench.release()
            assert bench.bounds == (2, 2)
            bench.produce(NOW + 110)
            bench.flusher.sync_due(NOW + 210)
            await turns()
            assert bench.bounds == (3, 3) and len(bench.started) == 1, "by the clock: nobody waits"
            await bench.release()

    run(work)


def test_settings_that_change_meanwhile_let_nothing_through_and_leave_nothing_behind(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1") as bench:
            bench.produce()
            await turns()
            bench.partition.configure(TopicConfig())
            bench.produce()
            assert bench.bounds == (0, 0), "what stands behind cannot be read before"
            await bench.release()
            assert bench.bounds == (2, 2)
            assert not bench.partition.holds_back, "no more to look at"
            bench.produce()
            assert bench.bounds == (3, 3)
            bench.partition.configure(TopicConfig().overridden({"flush.messages": "1"}))
            assert bench.bounds == (3, 3), "what was read is not taken back"
            bench.produce()
            assert bench.bounds == (3, 3)
            await turns()
            await bench.release()
            assert bench.bounds == (4, 4)

    run(work)


def test_a_flush_that_fails_lets_nothing_through(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1") as bench:
            waiting = bench.partition.flushed(bench.produce())
            assert waiting is not None
            await turns()
            behind = bench.produce()
            bench.disk.failing = {"sync"}
            await bench.release()
            with pytest.raises(KafkaError):
                await waiting
            later = bench.partition.flushed(behind)
            assert later is not None
            with pytest.raises(KafkaError):
                await later
            assert bench.partition.high_watermark == 0 and bench.woken == 0
            bench.disk.failing = set()

    run(work)


def test_coordinators_read_what_they_have_written(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1") as bench:
            bench.produce()
            assert len(list(bench.partition.read_all())) == 1
            await turns()
            await bench.release()

    run(work)


def test_retention_leaves_what_nobody_could_read_yet(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, flush_messages="1", retention_ms="1") as bench:
            bench.produce()
            log, partition = bench.partition.log, bench.partition
            later = NOW + 10_000
            assert log.shortening.apply_retention(later, upper_bound=partition.high_watermark) == []
            await turns()
            await bench.release()
            assert log.shortening.apply_retention(later, upper_bound=partition.high_watermark)
            assert log.log_start_offset == 1

    run(work)
