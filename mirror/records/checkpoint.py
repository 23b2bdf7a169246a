"""Records of the topic `<source>.checkpoints.internal`: a group's position in both clusters (KIP-382).

key      group STRING │ topic STRING │ partition INT32         the remote partition, in the target
value    version INT16 = 0 │ upstream offset INT64 │ downstream offset INT64 │ metadata STRING
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client import TopicPartition
from mirror.records.fields import FieldReader, int16, int32, int64, string

VERSION = 0


class Checkpoint(NamedTuple):
    """A group's committed offset in the source, and where the group goes on in the target."""

    consumer_group_id: str
    topic_partition: TopicPartition
    """The remote partition."""
    upstream_offset: int
    downstream_offset: int
    """-1 if the committed offset is older than every sync."""
    metadata: str = ""

    @property
    def record_key(self) -> bytes:
        """The record's key. Raises ValueError if a name is longer than 32,767 bytes."""
        return (
            string(self.consumer_group_id)
            + string(self.topic_partition.topic)
            + int32(self.topic_partition.partition)
        )

    @property
    def record_value(self) -> bytes:
        """The record's value. Raises ValueError if the metadata is longer than 32,767 bytes."""
        offsets = int64(self.upstream_offset) + int64(self.downstream_offset)
        return int16(VERSION) + offsets + string(self.metadata)

    @property
    def connect_partition(self) -> dict[str, object]:
        """The partition of the source offset that Kafka's MirrorCheckpointConnector stores in Connect."""
        return {
            "group": self.consumer_group_id,
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
        }


def parse_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Return the checkpoint in a record. Raises ValueError if the record is none, or of a later version."""
    keys, values = FieldReader(key), FieldReader(value)
    try:
        values.version("a checkpoint", VERSION)
        group, tp = keys.string(), TopicPartition(keys.string(), keys.int32())
        return Checkpoint(group, tp, values.int64(), values.int64(), values.string())
    except ValueError as e:
        raise ValueError(f"no checkpoint: {e}") from e
