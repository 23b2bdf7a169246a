"""Records of the topic `heartbeats`: a flow is alive (KIP-382).

key      source alias STRING │ target alias STRING
value    version INT16 = 0 │ timestamp INT64, ms
"""

from __future__ import annotations

from typing import NamedTuple

from mirror.records.fields import FieldReader, int16, int64, string

VERSION = 0


class Heartbeat(NamedTuple):
    """A sign of life of the flow from one cluster to another."""

    source_cluster_alias: str
    target_cluster_alias: str
    timestamp: int
    """When it was sent, ms since 1970."""

    @property
    def record_key(self) -> bytes:
        """The record's key. Raises ValueError if an alias is longer than 32,767 bytes."""
        return string(self.source_cluster_alias) + string(self.target_cluster_alias)

    @property
    def record_value(self) -> bytes:
        """The record's value, 10 bytes."""
        return int16(VERSION) + int64(self.timestamp)

    @property
    def connect_partition(self) -> dict[str, object]:
        """The partition of the source offset that Kafka's MirrorHeartbeatConnector stores in Connect."""
        return {
            "sourceClusterAlias": self.source_cluster_alias,
            "targetClusterAlias": self.target_cluster_alias,
        }


def parse_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """Return the heartbeat in a record. Raises ValueError if the record is none, or of a later version."""
    keys, values = FieldReader(key), FieldReader(value)
    try:
        values.version("a heartbeat", VERSION)
        return Heartbeat(keys.string(), keys.string(), values.int64())
    except ValueError as e:
        raise ValueError(f"no heartbeat: {e}") from e
