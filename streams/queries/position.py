"""Positions: how far a store reflects its inputs (KIP-796)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_client import TopicPartition


@dataclass(frozen=True, slots=True)
class Position:
    """The last offset of each input partition whose record, and all before it, are in the store.

    A missing partition has no records in the store, or its offset is unknown.
    """

    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def before(cls, positions: Mapping[TopicPartition, int]) -> Position:
        """Return the position before the next offsets to process, by input."""
        offsets: dict[str, dict[int, int]] = {}
        for tp, offset in sorted(positions.items()):
            if offset > 0:
                offsets.setdefault(tp.topic, {})[tp.partition] = offset - 1
        return cls(offsets)

    def offset(self, topic: str, partition: int) -> int | None:
        """Return the offset of a partition, None if missing."""
        return self.offsets.get(topic, {}).get(partition)

    def with_offset(self, topic: str, partition: int, offset: int) -> Position:
        """Return this position merged with a partition's offset."""
        return self.merge(Position({topic: {partition: offset}}))

    def merge(self, other: Position) -> Position:
        """Return the position with each partition's higher offset."""
        merged = {topic: dict(offsets) for topic, offsets in self.offsets.items()}
        for topic, offsets in other.offsets.items():
            mine = merged.setdefault(topic, {})
            for partition, offset in offsets.items():
                mine[partition] = max(offset, mine.get(partition, offset))
        return Position(merged)


@dataclass(frozen=True, slots=True)
class PositionBound:
    """The position that a store must have reached before it may answer."""

    position: Position = field(default_factory=Position)

    @classmethod
    def at(cls, position: Position) -> PositionBound:
        """Return the bound of at least this position, such as that of an earlier answer."""
        return cls(position)

    @classmethod
    def unbounded(cls) -> PositionBound:
        """Return a bound that any position meets."""
        return cls()

    def missing(self, position: Position, partition: int) -> Iterable[tuple[str, int, int | None]]:
        """Yield the topics in which a store's ``partition`` at ``position`` is behind the bound.

        Each comes with the bound's offset and the store's. As in Kafka Streams, only the store's own
        partition is compared.
        """
        for topic, offsets in self.position.offsets.items():
            required = offsets.get(partition)
            if required is not None:
                reached = position.offset(topic, partition)
                if reached is None or reached < required:
                    yield topic, required, reached
