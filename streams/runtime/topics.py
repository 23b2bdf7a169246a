"""The application's own topics: their names and configs.

Changelogs are compacted, and the broker's clock never expires their records. `runtime.commit.purge` deletes
records of windows and sessions by stream time. Segments roll by size only, because records may have any event
time. A segment that rolled after a jump in time could be cleaned. Then records of a commit that was never
finished could be lost (`runtime.commit`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client import NewTopic
from streams.state import StoreSpec
from streams.topology import Subtopology, Topology

_FOREVER = str(2**63 - 1)
_VERSIONS_LAG_MS = 24 * 60 * 60 * 1000
"""The time for which versions stay uncompacted after the store has dropped them, as in Kafka."""
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
    """The cluster's names of a topology's topics: internal topics have the application id as a prefix."""

    def __init__(self, application_id: str, topology: Topology) -> None:
        self.application_id = application_id
        self._internal = frozenset(topology.repartition_topics)

    def is_internal(self, topic: str) -> bool:
        """Return True if this application created a topic of the cluster, for this or an earlier topology."""
        return topic.startswith(f"{self.application_id}-") and topic.endswith(("-repartition", "-changelog"))

    def topic(self, name: str) -> str:
        """Return the cluster's name of a source or sink topic."""
        return f"{self.application_id}-{name}" if name in self._internal else name

    def changelog(self, store: StoreSpec) -> str:
        """Return the cluster's name of a store's changelog, which may be the topic of the store's table."""
        return store.source_topic or f"{self.application_id}-{store.changelog}"


def internal_topics(
    topology: Topology, names: TopicNames, counts: Mapping[str, int], replication_factor: int
) -> list[NewTopic]:
    """Return the topics that the application needs besides its inputs. ``counts``: see `partition_counts`."""
    topics = [
        NewTopic(names.topic(topic), counts[topic], replication_factor, _REPARTITION)
        for topic in topology.repartition_topics
    ]
    for subtopology in topology.with_tasks:
        tasks = count_tasks(subtopology, counts)
        for name in subtopology.stores if tasks else ():
            spec = topology.stores[name]
            if spec.logged:
                configs = {**_CHANGELOG, **_of_windows(spec), **_of_versions(spec), **spec.changelog_config}
                topics.append(NewTopic(names.changelog(spec), tasks, replication_factor, configs))
    return topics


def count_tasks(subtopology: Subtopology, counts: Mapping[str, int]) -> int:
    """Return the number of tasks of a sub-topology: 0 if no topic matches its patterns."""
    return max((counts[topic] for topic in subtopology.topics), default=0)


def _of_windows(spec: StoreSpec) -> dict[str, str]:
    return _OF_WINDOWS if spec.is_forgotten else {}


def _of_versions(spec: StoreSpec) -> dict[str, str]:
    """Return the additional configs of a versioned store's changelog (KIP-889)."""
    if spec.history_retention_ms is None:
        return {}
    return {"min.compaction.lag.ms": str(min(spec.history_retention_ms + _VERSIONS_LAG_MS, 2**63 - 1))}
