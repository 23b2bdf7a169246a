"""The name of a partition, for broker, storage, client and users of the client."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic, equal to the pair (topic, partition), with the same hash."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
