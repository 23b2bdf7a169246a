"""A record of a consumer, with its topic, partition and offset."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from kafka_client.records.record import Headers
from kafka_client.topic_partition import TopicPartition

TimestampType = Literal["create_time", "log_append_time"]
TIMESTAMP_TYPES: tuple[TimestampType, TimestampType] = ("create_time", "log_append_time")
"""The timestamp types, indexed by the bit in a batch's attributes."""


class ConsumerRecord(NamedTuple):
    """A record of a partition. Kafka's ConsumerRecord.

    `timestamp_ms`: ms since 1970; by `timestamp_type` the producer's time or the broker's at append.
    `key`, `value`: bytes or None, or what the consumer's deserializer made of the bytes.
    `headers`: pairs of name and bytes (or None), in order; names may repeat.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: Headers

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and partition of the record."""
        return TopicPartition(self.topic, self.partition)
