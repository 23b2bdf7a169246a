"""The topics and partitions that `kafka-topics --describe` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_client import ConfigEntry, OngoingReassignment, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire import Message
from kafka_client.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from millstream.commands.partition.status import moves_under_way, replication_factor
from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.java.java_uuid import parse_uuid, shown_uuid
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.kafka_tools.topics.actions import check_exists, find_topics
from millstream.terminal.session import Session

DEFAULT = 5
"""The source of a setting that has its default."""
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. `eligible` and `last_eligible` are None if the broker does not support KIP-966."""

    index: int
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    eligible: Sequence[int] | None = None
    last_eligible: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions, in order."""

    name: str
    topic_id: bytes
    partitions: Sequence[Partition]


async def describe_topics(session: Session, values: OptionValues) -> None:
    """Print topics with their partitions."""
    names = await _names(session, values)
    topics = {topic.name: topic for topic in await _describe(session, names, values)}
    configs = await session.admin.describe_topics_configs(topics)
    live = set((await session.client.metadata((), refresh=True)).brokers)
    tps = [TopicPartition(topic.name, p.index) for topic in topics.values() for p in topic.partitions]
    moves = await moves_under_way(session, tps)
    for name in sorted(topics):
        config = configs[name]
        if isinstance(config, KafkaError):
            raise config
        for line in _lines(topics[name], config, moves, _Filter(values, live)):
            print(line)


async def _names(session: Session, values: OptionValues) -> Sequence[str]:
    text = values.text("topic-id")
    topic_id = None if text is None else parse_uuid(text)
    if topic_id is None or not any(topic_id):
        names = await find_topics(session, values)
        check_exists(values, names)
        return names
    topics = await session.admin.list_topics()
    internal = not values.has("exclude-internal")
    names = [name for name, t in topics.items() if t.topic_id == topic_id and (internal or not t.is_internal)]
    if not names and not values.has("if-exists"):
        raise illegal_argument(f"TopicId '{shown_uuid(topic_id)}' does not exist as expected")
    return names


async def _describe(session: Session, names: Sequence[str], values: OptionValues) -> list[Topic]:
    """Describe topics by DescribeTopicPartitions, in pages, or by metadata for older brokers."""
    limit = values.integer("partition-size-limit-per-response")
    if not names:
        return []
    try:
        return await _pages(session, sorted(names), 2000 if limit is None else limit)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
    return [
        Topic(
            name,
            topic.topic_id,
            [
                Partition(p.partition, p.leader, p.replicas, p.isr)
                for _, p in sorted(topic.partitions.items())
            ],
        )
        for name, topic in (await session.admin.describe_topics(names)).items()
    ]


async def _pages(session: Session, names: Sequence[str], limit: int) -> list[Topic]:
    topics: dict[str, tuple[bytes, list[Partition]]] = {}
    cursor: Cursor | None = None
    while True:
        rest = [name for name in names if cursor is None or name >= cursor.topic_name]
        request: Message = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in rest],
            response_partition_limit=limit,
            cursor=cursor,
        )
        answer: DescribeTopicPartitionsResponse = await session.client.request(request)
        for topic in answer.topics:
            _, partitions = topics.setdefault(topic.name or "", (topic.topic_id, []))
            partitions += _partitions(topic)
        if (cursor := answer.next_cursor) is None:
            return [Topic(name, topic_id, partitions) for name, (topic_id, partitions) in topics.items()]


def _partitions(topic: DescribeTopicPartitionsResponseTopic) -> Iterator[Partition]:
    if topic.error_code:
        raise KafkaError(topic.error_code)
    return map(_partition, topic.partitions)


def _partition(p: DescribeTopicPartitionsResponsePartition) -> Partition:
    return Partition(
        p.partition_index,
        p.leader_id,
        p.replica_nodes,
        p.isr_nodes,
        p.eligible_leader_replicas,
        p.last_known_elr,
    )


class _Filter:
    """The filter that the options describe: which topics and partitions are printed."""

    def __init__(self, values: OptionValues, live: set[int]) -> None:
        self._values = values
        self._live = live
        self.overridden = values.has("topics-with-overrides")
        self.topics = not values.has(
            "unavailable-partitions",
            "under-replicated-partitions",
            "under-min-isr-partitions",
            "at-min-isr-partitions",
        )

    def admits(self, p: Partition, factor: int, min_isr: int) -> bool:
        """Return True if the partition is printed."""
        has = self._values.has
        return (
            self.topics
            or (has("under-replicated-partitions") and len(p.isr) < factor)
            or (has("unavailable-partitions") and p.leader not in self._live)
            or (has("under-min-isr-partitions") and (p.leader == NO_LEADER or len(p.isr) < min_isr))
            or (has("at-min-isr-partitions") and len(p.isr) == min_isr)
        )


def _lines(
    topic: Topic,
    config: Mapping[str, ConfigEntry],
    moves: Mapping[TopicPartition, OngoingReassignment],
    only: _Filter,
) -> Iterator[str]:
    own = [config[key] for key in sorted(config) if config[key].source != DEFAULT]
    factors = [
        replication_factor(p.replicas, moves.get(TopicPartition(topic.name, p.index)))
        for p in topic.partitions
    ]
    if only.topics and (own or not only.overridden):
        topic_id = f"\tTopicId: {shown_uuid(topic.topic_id)}" if any(topic.topic_id) else ""
        yield (
            f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {factors[0]}\tConfigs: {','.join(f'{e.name}={e.value}' for e in own)}"
        )
    if only.overridden:
        return
    min_isr = int(config["min.insync.replicas"].value or 1)
    for p, factor in zip(topic.partitions, factors, strict=True):
        if only.admits(p, factor, min_isr):
            yield _line(topic.name, p, moves.get(TopicPartition(topic.name, p.index)))


def _line(name: str, p: Partition, move: OngoingReassignment | None) -> str:
    fields = {
        "Topic": name,
        "Partition": str(p.index),
        "Leader": "none" if p.leader == NO_LEADER else str(p.leader),
        "Replicas": _joined(p.replicas),
        "Isr": _joined(p.isr),
    }
    if move is not None:
        fields |= {"Adding Replicas": _joined(move.adding), "Removing Replicas": _joined(move.removing)}
    fields |= {"Elr": _joined(p.eligible), "LastKnownElr": _joined(p.last_eligible)}
    return "".join(f"\t{key}: {value}" for key, value in fields.items())


def _joined(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))
