"""Topics of thousands of partitions come and go without holding up anybody else.

Making 5,000 partitions held the event loop for seconds: folder after folder, three files in each. Now their
logs begin in memory, in slices, and threads make the files behind the answer.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafka_client.errors import KafkaError
from kafka_client.records import build_batch
from logd.broker.broker import Broker
from logd.broker.topics.replicas import PARTITIONS_PER_TURN
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint
from logd.storage.new_log import Placement
from tests.support.depth import deep

NOW = 1_700_000_000_000
Work = Callable[[Broker], Awaitable[None]]


def run(work: Work, *folders: Path) -> None:
    """Run `work` with a broker that has real threads."""

    async def live() -> None:
        config = {"log.dirs": ",".join(map(str, folders)), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        broker = Broker(BrokerConfig.of(config))
        broker.endpoints.append(Endpoint("PLAINTEXT", "127.0.0.1", 9092))
        await broker.start()
        try:
            await work(broker)
        finally:
            await broker.stop()

    asyncio.run(live())


async def steps_of(change: Awaitable[object], count: Callable[[], int]) -> list[int]:
    """Return by how much a count changes in each turn of the event loop during a change."""
    changing = asyncio.ensure_future(change)
    counts = [count()]
    while not changing.done():
        await asyncio.sleep(0)
        counts.append(count())
    await changing
    return [abs(after - before) for before, after in itertools.pairwise(counts)]


def batch(value: bytes) -> memoryview:
    return memoryview(build_batch([(NOW, None, value, ())]))


@deep
@pytest.mark.parametrize("change", ["create", "grow", "delete"])
def test_the_event_loop_has_its_turn_in_between(change: str, tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        (folder,) = broker.directories
        if change != "create":
            await broker.catalog.create("t", 1000 if change == "delete" else 1, {})
        if change == "create":
            changing = broker.catalog.create("t", 1000, {})
        elif change == "grow":
            changing = broker.catalog.grow("t", 1000)  # type: ignore[assignment]
        else:
            changing = deleted(broker)  # type: ignore[assignment]
        steps = await steps_of(changing, lambda: len(folder.logs))
        assert max(steps) <= PARTITIONS_PER_TURN
        assert sum(steps) >= 999

    async def deleted(broker: Broker) -> None:
        await broker.catalog.delete(broker.catalog.topics["t"])
        await broker.catalog.disk_work_ended()

    run(work, tmp_path)


def test_files_are_made_and_taken_away_by_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()

    def noting(call: Callable[..., None]) -> Callable[..., None]:
        def noted(*arguments: object, **more: object) -> None:
            threads.add(threading.current_thread())
            call(*arguments, **more)

        return noted

    async def work(broker: Broker) -> None:
        for name in ("mkdir", "rename", "replace", "fsync", "fdatasync"):
            monkeypatch.setattr(os, name, noting(getattr(os, name)))
        for _ in range(2):  # the second time under a name that checkpoints speak of
            await broker.catalog.create("t", 120, {})
            await broker.catalog.disk_work_ended()
            await broker.housekeeping.write_checkpoints()
            assert all((tmp_path / f"t-{index}" / "partition.metadata").exists() for index in range(120))
            await broker.catalog.delete(broker.catalog.topics["t"])
        await broker.catalog.disk_work_ended()
        assert not [path for path in tmp_path.glob("t-*") if not path.name.endswith("-delete")]
        monkeypatch.undo()
        assert threads
        assert threading.main_thread() not in threads

    run(work, tmp_path)


def test_a_record_that_comes_before_the_files_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that come before a partition's files create them; threads that come later leave them as they
    are.
    """
    may_place = threading.Event()
    carry_out = Placement.carry_out

    def wait_and_carry_out(placement: Placement) -> None:
        if threading.current_thread() is not threading.main_thread():
            assert may_place.wait(30)
            placement.is_done = False
        carry_out(placement)

    monkeypatch.setattr(Placement, "carry_out", wait_and_carry_out)

    async def work(broker: Broker) -> None:
        topic = await broker.catalog.create("t", 3, {})
        partition = topic.partition(1)
        assert not (tmp_path / "t-1").exists()
        assert partition.read(0, 1000) is None
        assert partition.produce(batch(b"first"), NOW, 1).base_offset == 0
        assert (tmp_path / "t-1" / "partition.metadata").exists()
        assert not (tmp_path / "t-0").exists()
        may_place.set()
        await broker.catalog.disk_work_ended()
        assert partition.produce(batch(b"second"), NOW, 1).base_offset == 1
        assert all((tmp_path / f"t-{index}" / "partition.metadata").exists() for index in range(3))

    async def look(broker: Broker) -> None:
        assert [broker.catalog.topics["t"].partition(index).log_end_offset for index in range(3)] == [0, 2, 0]

    run(work, tmp_path)
    run(look, tmp_path)


def test_a_topic_deleted_and_made_again_before_its_files_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics deleted and created again before their files exist share no files with the old topic."""
    may_place = threading.Event()
    carry_out = Placement.carry_out

    def wait_and_carry_out(placement: Placement) -> None:
        if threading.current_thread() is not threading.main_thread():
            assert may_place.wait(30)
        carry_out(placement)

    monkeypatch.setattr(Placement, "carry_out", wait_and_carry_out)

    async def work(broker: Broker) -> None:
        old = await broker.catalog.create("t", 3, {})
        old.partition(0).produce(batch(b"old"), NOW, 1)
        await broker.catalog.delete(old)
        again = asyncio.ensure_future(broker.catalog.create("t", 3, {}))
        await asyncio.sleep(0)
        may_place.set()
        topic = await again
        assert topic.topic_id != old.topic_id
        assert topic.partition(0).produce(batch(b"new"), NOW, 1).base_offset == 0
        with pytest.raises(KafkaError):
            old.partition(1).produce(batch(b"late"), NOW, 1)

    async def look(broker: Broker) -> None:
        assert [partition.log_end_offset for partition in broker.catalog.partitions.values()] == [1, 0, 0]

    run(work, tmp_path)
    run(look, tmp_path)


def test_partitions_whose_folder_fails_begin_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions whose log directory fails after the response are placed in another one, unless they have
    records.
    """
    carry_out = Placement.carry_out
    bad = tmp_path / "a"
    may_place = threading.Event()

    def fail(placement: Placement) -> None:
        if threading.current_thread() is not threading.main_thread():
            assert may_place.wait(30)
            if placement._directory.parent == bad and not placement.is_done:
                raise OSError(errno.EIO, "the disk is broken")
        carry_out(placement)

    monkeypatch.setattr(Placement, "carry_out", fail)

    async def work(broker: Broker) -> None:
        topic = await broker.catalog.create("t", 4, {})
        with_record = next(one for one in topic.partitions if one is not None and one.directory.path == bad)
        assert with_record.produce(batch(b"kept"), NOW, 1).base_offset == 0
        may_place.set()
        await broker.catalog.disk_work_ended()
        for index in range(4):
            if index == with_record.index:
                with pytest.raises(KafkaError):
                    topic.partition(index)
            else:
                assert topic.partition(index).produce(batch(b"new"), NOW, 1).base_offset == 0
                assert topic.partition(index).directory.path == tmp_path / "b"

    async def look(broker: Broker) -> None:
        ends = [broker.catalog.topics["t"].partition(index).log_end_offset for index in range(4)]
        assert ends == [1, 1, 1, 1]

    run(work, bad, tmp_path / "b")
    monkeypatch.undo()
    run(look, bad, tmp_path / "b")
