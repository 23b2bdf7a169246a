"""Compares all records of two partitions in order, by digests, and finds the first difference.

Both sides are read once and digested. If the digests of a partition differ, one range of each side is read
again and compared record by record. After records that cannot be read the numbers of the others are unknown,
so a difference after them proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafka_client import TopicPartition
from kafka_client.records import Record
from mirror.verify.comparison import ComparedBy, Difference, PartitionComparison
from mirror.verify.digest import RANGE, PartitionDigest, first_different_range
from mirror.verify.reading import Bounds, SideReader


@dataclass(slots=True)
class _Read:
    """A partition as one side has it."""

    tp: TopicPartition
    end: int
    digest: PartitionDigest = field(default_factory=PartitionDigest)
    gap: int | None = None
    """Number of records before the first that could not be read, None if all could."""

    def add(self, records: Sequence[Record], gaps: Sequence[int]) -> None:
        """Add the next records."""
        if gaps and self.gap is None:
            self.gap = self.digest.count + gaps[0]
        self.digest.add(records)


async def compare_in_order(
    source: SideReader, target: SideReader, source_bounds: Bounds, target_bounds: Bounds
) -> list[PartitionComparison]:
    """Compare the partitions that both bounds have, each to the partition of the same number."""
    ours, theirs = await asyncio.gather(_digests(source, source_bounds), _digests(target, target_bounds))
    return [
        await _compare(source, ours[partition], target, theirs[partition])
        for partition in sorted(ours.keys() & theirs.keys())
    ]


async def _digests(reader: SideReader, bounds: Bounds) -> dict[int, _Read]:
    reads = {tp.partition: _Read(tp, end) for tp, (_, end) in bounds.items()}
    async for tp, records, gaps in reader.read(bounds):
        reads[tp.partition].add(records, gaps)
    return reads


async def _compare(source: SideReader, ours: _Read, target: SideReader, theirs: _Read) -> PartitionComparison:
    source_digest, target_digest = ours.digest.finish(), theirs.digest.finish()
    equal: bool | None = source_digest == target_digest
    difference, equal_records = None, None
    if not equal:
        at = first_different_range(ours.digest, theirs.digest)
        difference = first_difference(
            at * RANGE, await _read_range(source, ours, at), await _read_range(target, theirs, at)
        )
        gap = min((gap for gap in (ours.gap, theirs.gap) if gap is not None), default=None)
        if gap is not None and gap <= (difference.index or 0):
            equal, difference, equal_records = None, None, gap
    partition = ours.tp.partition
    return PartitionComparison(
        partition=partition,
        compared_by=ComparedBy.RECORDS,
        equal=equal,
        source_digest=source_digest,
        target_digest=target_digest,
        source_records=ours.digest.count,
        target_records=theirs.digest.count,
        equal_records=equal_records,
        difference=difference,
        unreadable=source.unreadable.get(partition, []) + target.unreadable.get(partition, []),
    )


async def _read_range(reader: SideReader, read: _Read, at: int) -> list[Record]:
    """Return the records of range `at`, or an empty list if the partition ended before it."""
    if at >= len(read.digest.offsets):
        return []
    records: list[Record] = []
    async for _, part, _ in reader.read({read.tp: (read.digest.offsets[at], read.end)}):
        records += part
        if len(records) >= RANGE:
            break
    return records[: min(RANGE, read.digest.count - at * RANGE)]


def first_difference(base: int, ours: Iterable[Record], theirs: Iterable[Record]) -> Difference:
    """Return the first difference of the records from number `base` on. They are not all equal."""
    ours, theirs = list(ours), list(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a[1:] != b[1:]:
            return Difference(base + i, a, b)
    i = min(len(ours), len(theirs))
    return Difference(base + i, ours[i] if i < len(ours) else None, theirs[i] if i < len(theirs) else None)
