"""What the client knows of a cluster: brokers, topics, partition leaders.

Plain immutable values. Asking for them, caching and refreshing them is `cluster`'s work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client.topic_partition import TopicPartition

NO_NODE = -1


class OffsetAndMetadata(NamedTuple):
    """A position: the next record to read, a committer's note, the leader epoch of the record before it
    (-1: not known).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1

    @classmethod
    def of(cls, position: int | OffsetAndMetadata) -> OffsetAndMetadata:
        """The position, where a plain offset will do as well."""
        return cls(position) if isinstance(position, int) else position


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker and where to reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition: its leader (`NO_NODE` while there is none), leader epoch and replicas."""

    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic: name, id (16 bytes, zeros where the broker has none) and partitions by number."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionMetadata]
    is_internal: bool = False

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has."""
        return len(self.partitions)


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A cluster as one broker described it."""

    cluster_id: str | None = None
    controller_id: int = NO_NODE
    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)

    def partitions(self, topics: Iterable[str] | None = None) -> list[TopicPartition]:
        """Every partition of the given topics (all by default) that are known here, in order."""
        names = sorted(self.topics) if topics is None else topics
        return [
            TopicPartition(name, partition)
            for name in names
            if name in self.topics
            for partition in sorted(self.topics[name].partitions)
        ]
