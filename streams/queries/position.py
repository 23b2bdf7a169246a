"""Positions: how far a store reflects its inputs (KIP-796)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_client import TopicPartition


@dataclass(frozen=True, slots=True)
class Position:
    """By topic and partition, the offset up to which, itself included, all is in the store.

    A partition that is not there has nothing in the store, or it is not known.
    """

    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def before(cls, positions: Mapping[TopicPartition, int]) -> Position:
        """Of the next offset to be processed of each input."""
        offsets: dict[str, dict[int, int]] = {}
        for tp, offset in sorted(positions.items()):
            if offset > 0:
                offsets.setdefault(tp.topic, {})[tp.partition] = offset - 1
        return cls(offsets)

    def offset(self, topic: str, partition: int) -> int | None:
        """The offset of one partition."""
        return self.offsets.get(topic, {}).get(partition)

    def with_offset(self, topic: str, partition: int, offset: int) -> Position:
        """This position, and one more partition."""
        return self.merge(Position({topic: {partition: offset}}))

    def merge(self, other: Position) -> Position:
        """Of each partition the higher offset."""
        merged = {topic: dict(offsets) for topic, offsets in self.offsets.items()}
        for topic, offsets in other.offsets.items():
            mine = merged.setdefault(topic, {})
            for partition, offset in offsets.items():
                mine[partition] = max(offset, mine.get(partition, offset))
        return Position(merged)


@dataclass(frozen=True, slots=True)
class PositionBound:
    """What a store has to reflect before it may answer."""

    position: Position = field(default_factory=Position)

    @classmethod
    def at(cls, position: Position) -> PositionBound:
        """At least this, which an earlier answer, or a producer's acknowledgement, told."""
        return cls(position)

    @classmethod
    def unbounded(cls) -> PositionBound:
        """Anything will do."""
        return cls()

    def missing(self, position: Position, partition: int) -> Iterable[tuple[str, int, int | None]]:
        """The topics by which a store of ``partition`` at ``position`` is short, with the offset that is
        wanted and the one that is there. As in Kafka Streams, other partitions do not matter to it.
        """
        for topic, offsets in self.position.offsets.items():
            wanted = offsets.get(partition)
            if wanted is not None:
                there = position.offset(topic, partition)
                if there is None or there < wanted:
                    yield topic, wanted, there
