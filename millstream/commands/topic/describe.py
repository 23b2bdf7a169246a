"""The output of `topic describe`: topics with their own settings, and the replicas of their partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka_client import PartitionMetadata, TopicMetadata, TopicPartition
from millstream.commands.config.keys import own_settings
from millstream.commands.partition.status import Standing, read_standings
from millstream.terminal.output import Format
from millstream.terminal.session import Session

TOPIC = ("topic", "topic_id", "partition_count", "replication_factor", "internal", "configs")
PARTITION = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "offline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """The filter of partitions: a partition that meets any of the set conditions is shown."""

    under_replicated: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    unavailable: bool = False

    @property
    def everything(self) -> bool:
        """True if no condition is set."""
        return not (self.under_replicated or self.under_min_isr or self.at_min_isr or self.unavailable)

    def admits(self, standing: Standing) -> bool:
        """Return True if the partition meets a set condition."""
        return (
            (self.under_replicated and standing.is_under_replicated)
            or (self.under_min_isr and standing.is_under_min_isr)
            or (self.at_min_isr and standing.is_at_min_isr)
            or (self.unavailable and not standing.is_led)
        )


async def describe_topics(
    session: Session, names: Sequence[str] | None, only: Only, exclude_internal: bool
) -> list[dict[str, Any]]:
    """Return a mapping for each topic, with its partitions."""
    if names is None:
        topics = await session.admin.list_topics()
    else:
        topics = await session.admin.describe_topics(names)
    chosen = {
        name: topic for name, topic in sorted(topics.items()) if not (exclude_internal and topic.is_internal)
    }
    shown = {TopicPartition(name, index) for name, topic in chosen.items() for index in topic.partitions}
    if not only.everything:
        shown = {each.tp for each in await read_standings(session, chosen) if only.admits(each)}
    named = {tp.topic for tp in shown}
    chosen = {name: topic for name, topic in chosen.items() if name in named}
    configs = await session.admin.describe_topics_configs(chosen)
    return [_described(topic, own_settings(configs.get(name)), shown) for name, topic in chosen.items()]


def _described(
    topic: TopicMetadata, configs: Mapping[str, str | None], shown: Collection[TopicPartition]
) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": str(UUID(bytes=topic.topic_id)) if any(topic.topic_id) else None,
        "partition_count": topic.partition_count,
        "replication_factor": max((len(p.replicas) for p in topic.partitions.values()), default=0),
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": [
            _partition(topic.name, partition)
            for index, partition in sorted(topic.partitions.items())
            if (topic.name, index) in shown
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
    """Show tables of topics and partitions; as plain text only partitions; in other forms nested topics."""
    if session.form not in (Format.TABLE, Format.PLAIN):
        session.show(topics, TOPIC)
        return
    listed = list(topics)
    if session.form is Format.TABLE and only.everything:
        session.show(listed, TOPIC)
        print()
    session.show((partition for topic in listed for partition in topic["partitions"]), PARTITION)
