"""The application's own topics: their names and configs.

Changelogs are compacted, never expired by the broker's clock (those of windows and sessions may be deleted
from, which `runtime.purge` does by stream time), and roll segments by size only: records may carry any event
time, and a segment that rolls because times jump would let the cleaner at records of a commit that was never
finished (`runtime.commit`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client import NewTopic
from streams.state import StoreSpec
from streams.topology import Subtopology, Topology

_FOREVER = str(2**63 - 1)
_VERSIONS_LAG_MS = 24 * 60 * 60 * 1000
"""Versions are left uncompacted so much longer than a store keeps them, as in Kafka."""
_SEGMENT_BYTES = str(50 * 1024 * 1024)

_CHANGELOG = {
    "cleanup.policy": "compact",
    "segment.bytes": _SEGMENT_BYTES,
    "segment.ms": _FOREVER,
    "message.timestamp.type": "CreateTime",
}
_OF_WINDOWS = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}
_REPARTITION = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "segment.bytes": _SEGMENT_BYTES,
    "message.timestamp.type": "CreateTime",
}


class TopicNames:
    """From the topology's names to the cluster's: internal topics get the application id in front."""

    def __init__(self, application_id: str, topology: Topology) -> None:
        self.application_id = application_id
        self._internal = frozenset(topology.repartition_topics)

    def is_internal(self, topic: str) -> bool:
        """Whether the application made a topic of the cluster, now or as an earlier topology."""
        return topic.startswith(f"{self.application_id}-") and topic.endswith(("-repartition", "-changelog"))

    def topic(self, name: str) -> str:
        """The cluster's name of a source or sink topic."""
        return f"{self.application_id}-{name}" if name in self._internal else name

    def changelog(self, store: StoreSpec) -> str:
        """The cluster's name of a store's changelog, which may be the topic of the store's table."""
        return store.source_topic or f"{self.application_id}-{store.changelog}"


def internal_topics(
    topology: Topology, names: TopicNames, counts: Mapping[str, int], replication_factor: int
) -> list[NewTopic]:
    """Every topic the application needs besides its inputs, with `partition_counts` of the inputs."""
    wanted = [
        NewTopic(names.topic(topic), counts[topic], replication_factor, _REPARTITION)
        for topic in topology.repartition_topics
    ]
    for subtopology in topology.with_tasks:
        tasks = count_tasks(subtopology, counts)
        for name in subtopology.stores if tasks else ():
            spec = topology.stores[name]
            if spec.logged:
                configs = {**_CHANGELOG, **_of_windows(spec), **_of_versions(spec), **spec.changelog_config}
                wanted.append(NewTopic(names.changelog(spec), tasks, replication_factor, configs))
    return wanted


def count_tasks(subtopology: Subtopology, counts: Mapping[str, int]) -> int:
    """How many tasks a sub-topology has; none where no topic matches its patterns."""
    return max((counts[topic] for topic in subtopology.topics), default=0)


def _of_windows(spec: StoreSpec) -> dict[str, str]:
    return _OF_WINDOWS if spec.is_forgotten else {}


def _of_versions(spec: StoreSpec) -> dict[str, str]:
    """What a versioned store's changelog has besides (KIP-889)."""
    if spec.history_retention_ms is None:
        return {}
    return {"min.compaction.lag.ms": str(min(spec.history_retention_ms + _VERSIONS_LAG_MS, 2**63 - 1))}
