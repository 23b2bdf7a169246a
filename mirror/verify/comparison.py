"""Results of comparing a topic with its copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_client import TopicPartition
from kafka_client.records import Record

_FIELDS = ("timestamp", "key", "value", "headers")


class Side(StrEnum):
    """The cluster of the topic, and that of its copy."""

    SOURCE = "source"
    TARGET = "target"


class ComparedBy(StrEnum):
    """The ways to compare: all records in order, or for a compacted topic the latest value of each key."""

    RECORDS = "records"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets of a partition that cannot be read, both inclusive.

    They are None if nothing of the partition can be read.
    """

    side: Side
    tp: TopicPartition
    first_offset: int | None
    last_offset: int | None
    reason: str

    def __str__(self) -> str:
        if self.first_offset is None:
            return f"the {self.side}'s {self.tp} cannot be read: {self.reason}"
        return (
            f"the {self.side}'s {self.tp} cannot be read at offsets {self.first_offset} to "
            f"{self.last_offset}: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two partitions. A side that has no such record has None.

    `index` is the record's number, from 0, in a comparison of all records. It is None for a key's latest
    value.
    """

    index: int | None
    source: Record | None
    target: Record | None

    def __str__(self) -> str:
        record = self.source or self.target
        assert record is not None
        what = f"record {self.index}" if self.index is not None else f"key {self._key()!r}"
        if self.source is None or self.target is None:
            only = Side.SOURCE if self.target is None else Side.TARGET
            return f"{what}: only the {only} has it, at offset {record[0]}"
        fields = zip(_FIELDS, self.source[1:], self.target[1:], strict=True)
        differing = [name for name, ours, theirs in fields if ours != theirs]
        return (
            f"{what}: {', '.join(differing)} differ, "
            f"source offset {self.source[0]}, target offset {self.target[0]}"
        )

    def _key(self) -> bytes | None:
        return next((side[2] for side in (self.source, self.target) if side and side[2] is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionComparison:
    """Digests and counts of a partition on both sides.

    The counts are of records, or of keys with a value if `compared_by` is latest. `equal` is None if that
    cannot be known because of what is `unreadable`; `equal_records` is then how many records from the start
    on are equal on both sides.
    """

    partition: int
    compared_by: ComparedBy
    equal: bool | None
    source_digest: str
    target_digest: str
    source_records: int
    target_records: int
    equal_records: int | None = None
    difference: Difference | None = None
    unreadable: Sequence[Unreadable] = ()


@dataclass(frozen=True, slots=True)
class TopicComparison:
    """Comparison of a topic with its copy, partition by partition."""

    source_topic: str
    target_topic: str
    partitions: Sequence[PartitionComparison] = field(default=())

    @property
    def equal(self) -> bool | None:
        """True if all partitions are equal, False if one differs, None if that is unknown."""
        results = [partition.equal for partition in self.partitions]
        return False if False in results else None if None in results else True

    @property
    def unreadable(self) -> list[Unreadable]:
        """The offsets that could not be read, by partition."""
        return [each for partition in self.partitions for each in partition.unreadable]

    @property
    def records(self) -> int:
        """Number of records, or keys of a compacted topic, that the source has."""
        return sum(partition.source_records for partition in self.partitions)
