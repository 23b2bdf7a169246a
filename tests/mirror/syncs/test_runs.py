"""Runs: exact translation where offsets of the source and the target keep their distance."""

from __future__ import annotations

import asyncio
import random

import pytest

from kafka_client import Identity, TopicPartition
from mirror.forward_batch import Passed
from mirror.offsets import OffsetSync, decode_sync, encode_sync, run_start_at
from mirror.partition import InFlight, PartitionCopy
from mirror.syncs.store import OffsetSyncStore

TP = TopicPartition("t", 0)


class CopiedPartition:
    """A partition's copy, and what each of the source's offsets became in the target."""

    def __init__(self, upstream: int = 0, downstream: int = 0) -> None:
        self.end = upstream
        self.expected: dict[int, int] = {}
        """The downstream offset of the first record at or after an upstream offset."""
        self.copy = PartitionCopy(
            tp=TP,
            remote=TopicPartition("a.t", 0),
            position=upstream,
            downstream=downstream,
            identity=Identity(1, 0),
            sequence=0,
            run_start=upstream,
            run_end=upstream,
        )

    def gap(self, size: int) -> None:
        for _ in range(size):
            self.expected[self.end] = self.copy.downstream
            self.end += 1

    def batch(self, *deltas: int) -> None:
        """Copy a batch with records at these offset deltas; the last one ends it."""
        first, at = self.end + deltas[0], self.copy.downstream
        for delta in range(deltas[-1] + 1):
            self.expected[self.end + delta] = at + sum(each < delta for each in deltas)
        self.end += deltas[-1] + 1
        future: asyncio.Future[int | None] = asyncio.Future()
        future.set_result(at)
        self.copy.add(InFlight(Passed(b"", len(deltas), first, self.end), 0, -1, -1, 0.0, future))
        self.copy.read_up_to(self.end)
        self.copy.take_acks(0.0)

    def store(self) -> OffsetSyncStore:
        """Return a store that has read the partition's sync from its record."""
        sync = self.copy.sync()
        assert sync is not None
        _, key, value, headers = encode_sync(sync, 0)
        assert key is not None and value is not None
        store = OffsetSyncStore()
        store.add(decode_sync(key, value, headers))
        store.finish_loading()
        return store


async def test_every_offset_since_the_last_gap_is_exact() -> None:
    partition = CopiedPartition()
    partition.batch(0, 1, 2)
    partition.gap(1)
    for _ in range(100):
        partition.batch(0, 1, 2, 3)
    store = partition.store()
    assert [store.translate(TP, offset) for offset in range(4, 405)] == list(range(3, 404))
    assert store.translate(TP, 3) == -1
    assert store.translate(TP, 500) == 403, "the end of what is copied, where a marker may follow"


async def test_what_is_not_exact_skips_no_record() -> None:
    source = random.Random(31)
    for _ in range(200):
        partition, store = CopiedPartition(source.randrange(9), source.randrange(9)), OffsetSyncStore()
        store.finish_loading()
        for _ in range(source.randrange(1, 30)):
            match source.randrange(4):
                case 0:
                    partition.gap(source.randrange(3))
                case 1:
                    partition.batch(*sorted(source.sample(range(9), source.randrange(1, 6))))
                case _:
                    partition.batch(*range(source.randrange(1, 6)))
            if (sync := partition.copy.sync()) is not None:
                store.add(sync)
        last = -1
        for upstream, downstream in sorted(partition.expected.items()):
            translated = store.translate(TP, upstream)
            if translated is not None:
                assert last <= translated <= downstream, (upstream, partition.expected)
                last = translated


def test_the_first_sync_promises_no_record() -> None:
    """A group that is ahead of a sync goes on one record after it, which nobody has copied here yet."""
    copy = CopiedPartition(5, 3).copy
    store = OffsetSyncStore()
    store.add(copy.first_sync(Passed(b"", 10, 7, 17)))
    store.finish_loading()
    assert [store.translate(TP, offset) for offset in (4, 5, 7, 8)] == [-1, 3, 3, 3]


@pytest.mark.parametrize(
    ("upstream", "downstream", "start"), [(20, 15, 2), (25, 20, 2), (26, 20, 26), (20, 20, 20)]
)
def test_a_run_goes_on_after_a_restart_without_a_gap(upstream: int, downstream: int, start: int) -> None:
    sync = OffsetSync(TP, 10, 5, 20, 15, run_start=2)
    assert run_start_at(upstream, downstream, sync) == start
    assert run_start_at(upstream, downstream, sync._replace(run_start=-1)) == upstream
    assert run_start_at(upstream, downstream, None) == upstream
