"""A replica that is away while compaction removes tombstones and transaction markers that it has not copied.

The replica must not bring deleted keys back, nor a transaction without its marker: it copies the whole log
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.records import build_batch, decode_records, iter_batches
from logd.broker.partition.partition import Partition
from logd.storage.cleaner.swap import Swap
from logd.storage.removals import Removals
from tests.logd.broker.cluster.nodes import TP, Node, Nodes

NOW = 1_700_000_000_000
QUICK = {
    "log_cleaner_backoff_ms": "20",
    "log_cleaner_dedupe_buffer_size": "2000000",
    "millstream_flush_interval_ms": "20",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "300",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
    "file.delete.delay.ms": "20",
}
PRODUCER = {"producer_id": 7, "producer_epoch": 0}
State = dict[bytes, bytes]


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def made(tmp_path: Path, **more: Any) -> Nodes:
    return Nodes(tmp_path, **{**QUICK, **more})


def put(node: Node, key: bytes, value: bytes | None, **facts: Any) -> None:
    data = build_batch([(NOW, key, value, ())], **facts)
    node.partition.append(data, NOW)  # which asks no coordinator of transactions


def records(node: Node) -> list[tuple[bytes, bytes | None]]:
    return [
        (key or b"", value)
        for chunk in node.partition.read_all()
        for position, header in iter_batches(chunk)
        if not header.is_control
        for _, _, key, value, _ in decode_records(chunk, position)
    ]


def state(node: Node) -> State:
    """Return the last value of each key that has one, without the key that only makes the log grow."""
    values = dict(records(node))
    return {key: value for key, value in values.items() if value is not None and key != b"tick"}


def has_markers(node: Node) -> bool:
    return any(
        header.is_control and header.count
        for chunk in node.partition.read_all()
        for _, header in iter_batches(chunk)
    )


async def settle(nodes: Nodes, *, keys: tuple[bytes, ...] = (b"gone",)) -> None:
    """Let the leader's log grow until compaction has removed all deleted and aborted records."""
    async with asyncio.timeout(20):
        while has_markers(nodes.leader) or any(key in keys for key, _ in records(nodes.leader)):
            put(nodes.leader, b"tick", b"." * 200)
            await asyncio.sleep(0.03)


async def in_sync(nodes: Nodes, count: int) -> None:
    await nodes.until(lambda: len(nodes.state.isr) == count, seconds=20)


async def ends(nodes: Nodes, *ids: int) -> None:
    """Wait until these nodes have the leader's whole log."""
    await nodes.until(
        lambda: all(
            nodes.nodes[id_].partition.high_watermark == nodes.leader.partition.log_end_offset for id_ in ids
        )
    )


async def test_a_deleted_key_does_not_come_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with made(tmp_path) as nodes:
        await nodes.create_topic(COMPACTED)
        put(nodes.leader, b"stays", b"1")
        put(nodes.leader, b"gone", b"deleted later")
        await ends(nodes, 2, 3)
        await nodes.nodes[2].stop()
        put(nodes.leader, b"gone", None)
        await settle(nodes)
        with caplog.at_level(logging.INFO, "logd.replication"):
            await nodes.nodes[2].start()
            await in_sync(nodes, 3)
        assert state(nodes.nodes[2]) == {b"stays": b"1"}
        assert nodes.nodes[2].partition.log.removal_offset >= 3
        text = caplog.text
        assert "t-0: broker 2, whose log ends at 2, has to begin anew at 0" in text
        assert "t-0 begins anew at 0: broker 1 had compacted away deletions or transaction markers" in text
        assert "elected uncleanly" not in text


async def test_a_transaction_that_was_ended_is_not_open_again(tmp_path: Path) -> None:
    async with made(tmp_path) as nodes:
        await nodes.create_topic(COMPACTED)
        put(nodes.leader, b"gone", b"aborted", base_sequence=0, transactional=True, **PRODUCER)
        await ends(nodes, 2, 3)
        await nodes.nodes[2].stop()
        nodes.leader.partition.append_marker(7, 1, False, 0, NOW, transaction_version=2)
        await settle(nodes)
        await nodes.nodes[2].start()
        await in_sync(nodes, 3)
        await ends(nodes, 2)
        partition = nodes.nodes[2].partition
        assert partition.last_stable_offset == partition.high_watermark
        assert not partition.has_open_transaction(7)


async def test_whoever_copied_such_a_log_tells_the_next_one(tmp_path: Path) -> None:
    """Replicas tell the next replica about removals in a log that they copied.

    The replica's own cleaner has never seen the deletion, and a restart did not make it forget.
    """
    async with made(tmp_path) as nodes:
        await nodes.create_topic(COMPACTED)
        put(nodes.leader, b"gone", b"deleted later")
        await ends(nodes, 2, 3)
        await nodes.nodes[2].stop()
        await nodes.nodes[3].stop()
        put(nodes.leader, b"gone", None)
        await settle(nodes)
        await nodes.nodes[2].start()
        await in_sync(nodes, 2)
        await ends(nodes, 2)
        await nodes.nodes[2].stop()
        await nodes.nodes[2].start()
        await in_sync(nodes, 2)
        await nodes.nodes[1].stop()
        assert nodes.state.leader == 2
        await nodes.nodes[3].start()
        await in_sync(nodes, 2)
        assert state(nodes.nodes[3]) == {}


def test_the_offset_is_on_the_disk_before_what_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removal offsets are on the disk before a segment without the tombstones, and before a replica copies
    one.
    """
    prepare, copy = Swap.prepare, Partition.copy
    steps: list[str] = []

    def checked_prepare(swap: Swap) -> bool:
        if swap._cleaned.removal_offset:
            steps.append("exchanged")
            assert saved(swap._directory) >= swap._cleaned.removal_offset
        return prepare(swap)

    def checked_copy(partition: Partition, *arguments: Any) -> Any:
        if partition.log.removal_offset:
            steps.append("copied")
            assert saved(partition.log.directory) == partition.log.removal_offset
        return copy(partition, *arguments)

    async def test() -> None:
        async with made(tmp_path) as nodes:
            await nodes.create_topic(COMPACTED)
            put(nodes.leader, b"gone", b"deleted later")
            await ends(nodes, 2, 3)
            await nodes.nodes[2].stop()
            put(nodes.leader, b"gone", None)
            await settle(nodes)
            offset = nodes.leader.partition.log.removal_offset
            await nodes.nodes[2].start()
            await in_sync(nodes, 3)
            assert saved(nodes.nodes[2].partition.log.directory) >= offset > 0

    def saved(folder: Path) -> int:
        return Removals.read(folder, -1, 0).offset

    monkeypatch.setattr(Swap, "prepare", checked_prepare)
    monkeypatch.setattr(Partition, "copy", checked_copy)
    run(test)
    assert {*steps} == {"exchanged", "copied"}


def test_a_round_is_given_up_where_a_replica_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction gives up a round if a replica came meanwhile.

    The replica has begun to copy the log, and may have records whose tombstones the round removes.
    """
    prepare = Swap.prepare
    comes: list[Callable[[], None]] = []

    def prepare_late(swap: Swap) -> bool:
        if swap._cleaned.removal_offset and comes:
            comes.pop()()
        return prepare(swap)

    async def test() -> None:
        async with made(tmp_path, lag_ms=1000) as nodes:
            await nodes.create_topic(COMPACTED)
            put(nodes.leader, b"gone", b"deleted later")
            await ends(nodes, 2, 3)
            node, leader = nodes.nodes[2], nodes.leader
            node.hears = False
            node.assignment.fetchers.unfollow(TP)
            put(leader, b"gone", None)
            await in_sync(nodes, 2)
            core = leader.leading.led[TP].core
            follower = core.progress(2)
            assert follower is not None

            def come() -> None:
                """Fetch as a follower that starts with an empty log."""
                follower.removal_offset, follower.log_end_offset = 0, 0
                leader.leading.fetches(2)
                removed.append(leader.partition.log.removal_offset)

            removed: list[int] = []
            comes.append(come)
            while not removed:
                put(leader, b"tick", b"." * 200)
                await asyncio.sleep(0.03)
            end = leader.partition.log_end_offset
            while leader.partition.log_end_offset < end + 10:
                leader.leading.fetches(2)
                put(leader, b"tick", b"." * 200)
                await asyncio.sleep(0.03)
            assert (b"gone", None) in records(leader)
            assert follower.removal_offset == 0
            await settle(nodes)  # it fetches no more

    monkeypatch.setattr(Swap, "prepare", prepare_late)
    run(test)


async def test_a_replica_comes_back_while_everything_is_deleted_and_compacted(tmp_path: Path) -> None:
    async with made(tmp_path) as nodes:
        await nodes.create_topic(COMPACTED)

        async def change() -> None:
            for number in range(100_000):
                put(nodes.nodes[1], b"key-%d" % number, b"%d" % number)
                put(nodes.nodes[1], b"key-%d" % (number - 10), None)
                put(nodes.nodes[1], b"tick", b"." * 200)
                await asyncio.sleep(0.02)

        changing = asyncio.ensure_future(change())
        for _ in range(3):
            await nodes.until(lambda: len(nodes.nodes[2].partition.log.segments.row) > 1)
            await nodes.nodes[2].stop()
            before = nodes.leader.partition.log.removal_offset
            await nodes.until(lambda: nodes.leader.partition.log.removal_offset > before + 20)  # noqa: B023
            await nodes.nodes[2].start()
            await in_sync(nodes, 3)
        changing.cancel()
        await ends(nodes, 2, 3)
        assert state(nodes.nodes[2]) == state(nodes.nodes[3]) == state(nodes.nodes[1])


async def test_a_replica_that_fetches_no_more_holds_nothing_up_for_long(tmp_path: Path) -> None:
    """Replicas that are registered but hang delay removals for replica.lag.time.max.ms at most."""
    async with made(tmp_path, lag_ms=500) as nodes:
        await nodes.create_topic(COMPACTED)
        put(nodes.leader, b"gone", b"deleted later")
        await ends(nodes, 2, 3)
        await nodes.nodes[2].assignment.stop()
        put(nodes.leader, b"gone", None)
        await in_sync(nodes, 2)
        await settle(nodes)
        await nodes.nodes[2].stop()
        await nodes.nodes[2].start()
        await in_sync(nodes, 3)
        assert state(nodes.nodes[2]) == {}


async def test_nothing_is_removed_above_a_replica_that_copies(tmp_path: Path) -> None:
    async with made(tmp_path, lag_ms=500) as nodes:
        await nodes.create_topic(COMPACTED)
        put(nodes.leader, b"stays", b"1")
        await ends(nodes, 2, 3)
        leader = nodes.leader
        nodes.nodes[2].hears = False
        nodes.nodes[2].assignment.fetchers.unfollow(TP)
        put(leader, b"gone", b"deleted later")
        put(leader, b"gone", None)

        async def grow(holds: Callable[[], bool]) -> None:
            async with asyncio.timeout(20):
                while not holds():
                    leader.leading.fetches(2)  # something else: it is slow with this partition
                    put(leader, b"tick", b"." * 200)
                    await asyncio.sleep(0.03)

        await grow(lambda: len(nodes.state.isr) == 2)
        await grow(lambda: (b"gone", b"deleted later") not in records(leader))
        end = leader.partition.log_end_offset
        await grow(lambda: leader.partition.log_end_offset > end + 30)
        assert (b"gone", None) in records(leader)
        nodes.nodes[2].hears = True
        nodes.apply([nodes.state.as_change(TP)])  # followed again
        await in_sync(nodes, 3)
        await settle(nodes)
        assert state(nodes.nodes[2]) == {b"stays": b"1"}


async def test_a_log_that_is_deleted_and_compacted_begins_later(tmp_path: Path) -> None:
    """Replicas whose end is before the log's new start begin at that start, and know what they lack."""
    async with made(tmp_path) as nodes:
        await nodes.create_topic({**COMPACTED, "cleanup.policy": "compact,delete"})
        put(nodes.leader, b"gone", b"deleted later")
        await ends(nodes, 2, 3)
        await nodes.nodes[2].stop()
        put(nodes.leader, b"gone", None)
        await settle(nodes)
        nodes.leader.partition.delete_records_before(4)
        await nodes.nodes[2].start()
        await in_sync(nodes, 3)
        assert nodes.nodes[2].partition.log_start_offset == 4
        assert state(nodes.nodes[2]) == {}
