"""The metadata of a cluster: brokers, topics, partition leaders.

The values are plain and immutable. `cluster` requests, caches and refreshes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client.topic_partition import TopicPartition

NO_NODE = -1


class OffsetAndMetadata(NamedTuple):
    """A committed position in a partition.

    `offset` is the next offset to read. `metadata` is a text of the committer's own. `leader_epoch` is the
    leader epoch of the last record that was read, the one before `offset`, or -1 if it is unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1

    @classmethod
    def of(cls, position: int | OffsetAndMetadata) -> OffsetAndMetadata:
        """Return the position; a plain offset is accepted too."""
        return cls(position) if isinstance(position, int) else position


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition: its leader (`NO_NODE` while there is none), leader epoch and replicas."""

    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic: name, id (16 bytes, zeros if the broker has none) and partitions by number."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionMetadata]
    is_internal: bool = False

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self.partitions)


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A cluster as one broker described it."""

    cluster_id: str | None = None
    controller_id: int = NO_NODE
    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)

    def partitions(self, topics: Iterable[str] | None = None) -> list[TopicPartition]:
        """Return every known partition of the given topics (by default of all), in order."""
        names = sorted(self.topics) if topics is None else topics
        return [
            TopicPartition(name, partition)
            for name in names
            if name in self.topics
            for partition in sorted(self.topics[name].partitions)
        ]
