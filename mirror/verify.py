"""Compares two topics and finds the first difference in each partition.

The committed records of both topics, up to their ends at the start, are read and digested at the same time.
If the digests of a partition differ, one range of each side is read again and compared record by record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_client import Admin, BatchFetcher, Client, OffsetSpec, TopicPartition
from kafka_client.records import Record
from mirror.digest import RANGE, PartitionDigest, first_different_range


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two partitions, at record `index` (from 0). A side that has ended has None."""

    index: int
    source: Record | None
    target: Record | None

    def __str__(self) -> str:
        if self.source is None or self.target is None:
            longer, record = ("source", self.source) if self.target is None else ("target", self.target)
            assert record is not None
            return f"record {self.index}: only the {longer} has it, at offset {record[0]}"
        names = ("timestamp", "key", "value", "headers")
        differing = [n for n, a, b in zip(names, self.source[1:], self.target[1:], strict=True) if a != b]
        return (
            f"record {self.index}: {', '.join(differing)} differ, "
            f"source offset {self.source[0]}, target offset {self.target[0]}"
        )


@dataclass(frozen=True, slots=True)
class PartitionComparison:
    """Digests and record counts of a partition on both sides."""

    partition: int
    source_digest: str
    target_digest: str
    source_records: int
    target_records: int
    difference: Difference | None

    @property
    def equal(self) -> bool:
        """True if both sides have the same records."""
        return self.source_digest == self.target_digest


@dataclass(frozen=True, slots=True)
class TopicComparison:
    """Comparison of a topic with its copy, partition by partition."""

    source_topic: str
    target_topic: str
    partitions: Sequence[PartitionComparison]

    @property
    def equal(self) -> bool:
        """True if all partitions are equal."""
        return all(partition.equal for partition in self.partitions)

    @property
    def records(self) -> int:
        """Number of records read from the source."""
        return sum(partition.source_records for partition in self.partitions)


async def verify_topic(source: Client, target: Client, topic: str, target_topic: str) -> TopicComparison:
    """Compare a topic of one cluster with a topic of another (or of the same).

    Partitions that only one side has count as empty on the other.
    """
    source_digests, target_digests = await asyncio.gather(
        _digest_topic(source, topic), _digest_topic(target, target_topic)
    )
    comparisons = []
    for partition in sorted(source_digests.keys() | target_digests.keys()):
        ours = source_digests.get(partition) or PartitionDigest()
        theirs = target_digests.get(partition) or PartitionDigest()
        source_digest, target_digest = ours.finish(), theirs.finish()
        difference = None
        if source_digest != target_digest:
            at = first_different_range(ours, theirs)
            difference = _compare(
                at * RANGE,
                await _read_range(source, TopicPartition(topic, partition), ours, at),
                await _read_range(target, TopicPartition(target_topic, partition), theirs, at),
            )
        comparisons.append(
            PartitionComparison(partition, source_digest, target_digest, ours.count, theirs.count, difference)
        )
    return TopicComparison(topic, target_topic, comparisons)


async def _digest_topic(client: Client, topic: str) -> dict[int, PartitionDigest]:
    partitions = (await client.topic(topic, refresh=True)).partitions
    tps = [TopicPartition(topic, partition) for partition in partitions]
    digests = {partition: PartitionDigest() for partition in partitions}
    async for tp, records in _read(client, await _bounds(client, tps)):
        digests[tp.partition].add(records)
    return digests


async def _bounds(client: Client, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    admin = Admin(client)
    earliest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "earliest")
    latest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "latest")
    starts = await admin.list_offsets(earliest)
    ends = await admin.list_offsets(latest, isolation_level="read_committed")
    return {tp: (starts[tp].offset, ends[tp].offset) for tp in tps}


async def _read(
    client: Client, bounds: Mapping[TopicPartition, tuple[int, int]]
) -> AsyncIterator[tuple[TopicPartition, list[Record]]]:
    """Yield committed records within the bounds [start, end), in order per partition."""
    ends = {tp: end for tp, (start, end) in bounds.items() if start < end}
    async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
        fetcher.assign({tp: bounds[tp][0] for tp in ends})
        while ends:
            for fetched in await fetcher.fetch():
                end = ends.get(fetched.tp)
                if end is None:
                    continue
                for part in fetched.parts():
                    records = part.records
                    if records and records[-1][0] >= end:
                        records = [record for record in records if record[0] < end]
                    yield fetched.tp, records
                if fetched.next_offset >= end:
                    del ends[fetched.tp]
                    fetcher.remove(fetched.tp)


async def _read_range(client: Client, tp: TopicPartition, digest: PartitionDigest, at: int) -> list[Record]:
    """Return the records of range `at`, or an empty list if the partition ended before it."""
    if at >= len(digest.offsets):
        return []
    begin = digest.offsets[at]
    (_, end) = (await _bounds(client, [tp]))[tp]
    records: list[Record] = []
    async for _, part in _read(client, {tp: (begin, end)}):
        records += part
        if len(records) >= RANGE:
            break
    return records[: min(RANGE, digest.count - at * RANGE)]


def _compare(base: int, ours: Sequence[Record], theirs: Sequence[Record]) -> Difference:
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a[1:] != b[1:]:
            return Difference(base + i, a, b)
    i = min(len(ours), len(theirs))
    return Difference(base + i, ours[i] if i < len(ours) else None, theirs[i] if i < len(theirs) else None)
