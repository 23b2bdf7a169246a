"""What `topic describe` shows: topics with settings of their own, and where their partitions are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from logd.client import PartitionMetadata, TopicMetadata
from millstream.config.keys import own_settings
from millstream.terminal.output import Format
from millstream.terminal.session import Session

TOPIC = ("topic", "topic_id", "partition_count", "replication_factor", "internal", "configs")
PARTITION = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "offline")


@dataclass(frozen=True, slots=True)
class Only:
    """Which partitions are looked for; those that are any of it."""

    under_replicated: bool
    unavailable: bool

    @property
    def everything(self) -> bool:
        """Whether nothing in particular is looked for."""
        return not (self.under_replicated or self.unavailable)

    def admits(self, partition: PartitionMetadata) -> bool:
        """Whether the partition is looked for."""
        return (
            self.everything
            or (self.under_replicated and len(partition.isr) < len(partition.replicas))
            or (self.unavailable and partition.leader < 0)
        )


async def describe_topics(
    session: Session, names: Sequence[str] | None, only: Only, exclude_internal: bool
) -> list[dict[str, Any]]:
    """A mapping for each topic, its partitions in it."""
    if names is None:
        topics = await session.admin.list_topics()
    else:
        topics = await session.admin.describe_topics(names)
    chosen = {
        name: topic
        for name, topic in sorted(topics.items())
        if not (exclude_internal and topic.is_internal) and any(map(only.admits, topic.partitions.values()))
    }
    configs = await session.admin.describe_topics_configs(chosen)
    return [_described(topic, own_settings(configs.get(name)), only) for name, topic in chosen.items()]


def _described(topic: TopicMetadata, configs: Mapping[str, str | None], only: Only) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": str(UUID(bytes=topic.topic_id)) if any(topic.topic_id) else None,
        "partition_count": topic.partition_count,
        "replication_factor": max((len(p.replicas) for p in topic.partitions.values()), default=0),
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": [
            _partition(topic.name, partition)
            for _, partition in sorted(topic.partitions.items())
            if only.admits(partition)
        ],
    }


def _partition(topic: str, partition: PartitionMetadata) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition.partition,
        "leader": partition.leader if partition.leader >= 0 else None,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offline": list(partition.offline),
    }


def show_topics(session: Session, topics: Iterable[dict[str, Any]], only: Only) -> None:
    """A table of topics and one of partitions; plain, the partitions; else topics with partitions in them."""
    if session.form not in (Format.TABLE, Format.PLAIN):
        session.show(topics, TOPIC)
        return
    listed = list(topics)
    if session.form is Format.TABLE and only.everything:
        session.show(listed, TOPIC)
        print()
    session.show((partition for topic in listed for partition in topic["partitions"]), PARTITION)
