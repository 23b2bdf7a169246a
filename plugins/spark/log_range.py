"""A range of offsets for a task to read."""

from __future__ import annotations

from typing import NamedTuple

from kafka_client import TopicPartition


class LogRange(NamedTuple):
    """Offsets of one partition from `start` up to, but not including, `end`.

    `topic_id` (16 bytes) tells the topic from a later one of the same name; empty if it is unknown.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: bytes = b""

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)
