"""The offsets that a stream's checkpoint keeps.

    {"flights": {"0": 23, "1": 5}, "#ids": {"flights": "…uuid…"}}

The topics are written as by Spark's Kafka source, so that its checkpoints can be continued. No topic's name
has a `#`. A query's first offsets have `"#first": true`. Spark does not store them: if it starts again before
its first batch is done, it asks for them again, and "latest" has moved. So the end of the first batch, which
Spark does store, has in `#from` where that batch begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka_client import TopicPartition

_IDS, _FIRST, _FROM = "#ids", "#first", "#from"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffsets:
    """Offsets by partition, the next ones to read, with the topics' ids."""

    offsets: Mapping[TopicPartition, int]
    ids: Mapping[str, bytes]
    """Empty for offsets that Spark's Kafka source wrote."""
    is_first: bool = False
    origin: StreamOffsets | None = None
    """Where the query's first batch begins, in the offsets where it ends."""

    @classmethod
    def parse(cls, stored: Mapping[str, Any]) -> StreamOffsets:
        """Return offsets from their JSON form."""
        origin = stored.get(_FROM)
        return cls(
            offsets={
                TopicPartition(topic, int(partition)): offset
                for topic, partitions in stored.items()
                if not topic.startswith("#")
                for partition, offset in partitions.items()
            },
            ids={topic: UUID(text).bytes for topic, text in stored.get(_IDS, {}).items()},
            is_first=bool(stored.get(_FIRST)),
            origin=None if origin is None else cls.parse(origin),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, always in the same order: Spark compares texts."""
        topics: dict[str, Any] = {}
        for tp in sorted(self.offsets):
            topics.setdefault(tp.topic, {})[str(tp.partition)] = self.offsets[tp]
        if self.ids:
            topics[_IDS] = {topic: str(UUID(bytes=self.ids[topic])) for topic in sorted(self.ids)}
        if self.is_first:
            topics[_FIRST] = True
        if self.origin is not None:
            topics[_FROM] = self.origin.to_json()
        return topics

    def is_of_other_topic(self, topic: str, other: StreamOffsets) -> bool:
        """Return True if both know the topic's id, and the ids differ."""
        mine, others = self.ids.get(topic), other.ids.get(topic)
        return mine is not None and others is not None and mine != others
