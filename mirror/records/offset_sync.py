"""Records of the topic `mm2-offset-syncs.<other cluster>.internal`: a record's two offsets (KIP-382).

key      topic STRING │ partition INT32             of the source
value    upstream offset INT64 │ downstream offset INT64
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client import TopicPartition
from mirror.records.fields import FieldReader, int32, int64, string


class OffsetSync(NamedTuple):
    """Corresponding offsets of one record in a source partition and in its remote partition."""

    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    @property
    def record_key(self) -> bytes:
        """The record's key. Raises ValueError if the topic's name is longer than 32,767 bytes."""
        return string(self.topic_partition.topic) + int32(self.topic_partition.partition)

    @property
    def record_value(self) -> bytes:
        """The record's value, 16 bytes."""
        return int64(self.upstream_offset) + int64(self.downstream_offset)


def parse_offset_sync(key: bytes, value: bytes) -> OffsetSync:
    """Return the sync in a record. Raises ValueError if the record is no offset sync."""
    keys, values = FieldReader(key), FieldReader(value)
    try:
        tp = TopicPartition(keys.string(), keys.int32())
        return OffsetSync(tp, values.int64(), values.int64())
    except ValueError as e:
        raise ValueError(f"no offset sync: {e}") from e
