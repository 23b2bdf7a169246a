"""The name of a partition, the same for broker, storage, client and whoever uses the client."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. Equal to the plain pair, and its hash is the pair's."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
