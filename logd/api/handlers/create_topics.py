"""CreateTopics, 2 to 7: each topic is created or refused by itself; validate-only requests change nothing.

Without a number of partitions or replicas (-1) the broker's defaults hold. A standalone broker holds one
replica of each partition; in a cluster the controller places them, or takes them as assigned. From version 5
on the answer carries the topic's settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from logd.api.request.context import RequestContext
from logd.api.request.mutations import check_mutations, count_mutations, mutation_throttle_ms
from logd.broker.broker import Broker
from logd.broker.topics.catalog import new_topic
from logd.broker.topics.configs import described_topic_configs
from logd.metadata.controller.topics import NewTopic

REQUEST = CreateTopicsRequest
STRICT_FROM = 6
"""First version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Answer topic by topic."""
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        if topic.name in results:
            continue
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} stands in the request twice")
            result = await _create(context, topic, request.validate_only)
        except KafkaError as error:
            result = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message, configs=None
            )
        results[topic.name] = result
    return CreateTopicsResponse(throttle_time_ms=mutation_throttle_ms(context), topics=list(results.values()))


def refused(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    """Return the response for when the controller cannot be reached."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, configs=None) for topic in request.topics
        ]
    )


async def _create(
    context: RequestContext, topic: CreatableTopic, validate_only: bool
) -> CreatableTopicResult:
    broker = context.broker
    configs = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name} needs a value")
        configs[config.name] = config.value
    new = (
        _placed_here(broker, topic, configs)
        if broker.cluster.is_standalone
        else _placed(broker, topic, configs)
    )
    if topic.name not in broker.catalog.topics:
        check_mutations(context, strict_from=STRICT_FROM)
    created = await broker.catalog.add(new, validate_only=validate_only)
    count_mutations(context, created.partitions)
    assigned = new.assignments
    return CreatableTopicResult(
        name=topic.name,
        topic_id=NO_UUID if validate_only else created.topic_id,
        num_partitions=created.partitions,
        replication_factor=new.replication_factor if assigned is None else len(assigned[0]),
        configs=[
            CreatableTopicConfigs(
                name=config.key,
                value=config.value,
                read_only=config.read_only,
                config_source=config.source,
                is_sensitive=config.sensitive,
            )
            for config in described_topic_configs(
                configs, broker.catalog.config_for(configs), broker.config_layers
            )
        ],
    )


def _placed(broker: Broker, topic: CreatableTopic, configs: Mapping[str, str]) -> NewTopic:
    """Return the topic to create, with the client's assignment of replicas if the request has one."""
    if not topic.assignments:
        partitions, factor = topic.num_partitions, topic.replication_factor
        return new_topic(
            topic.name,
            broker.config.num_partitions if partitions == -1 else partitions,
            configs,
            replication_factor=broker.config.default_replication_factor if factor == -1 else factor,
        )
    _check_assigned(topic)
    assignments = {row.partition_index: row.broker_ids for row in topic.assignments}
    return new_topic(topic.name, len(assignments), configs, assignments=assignments)


def _placed_here(broker: Broker, topic: CreatableTopic, configs: Mapping[str, str]) -> NewTopic:
    """Return the new topic of a standalone broker: one replica of each partition, on this broker."""
    if not topic.assignments:
        check_replication_factor(topic.name, topic.replication_factor)
        partitions = topic.num_partitions
        return new_topic(
            topic.name, broker.config.num_partitions if partitions == -1 else partitions, configs
        )
    _check_assigned(topic)
    for row in topic.assignments:
        check_assignment(broker, f"{topic.name}-{row.partition_index}", row.broker_ids)
    return new_topic(topic.name, len(topic.assignments), configs)


def _check_assigned(topic: CreatableTopic) -> None:
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"topic {topic.name} has an assignment: its numbers of partitions and replicas must be -1",
        )
    if sorted(row.partition_index for row in topic.assignments) != list(range(len(topic.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"topic {topic.name}: the assigned partitions must be 0 to {len(topic.assignments) - 1}",
        )


def check_replication_factor(name: str, factor: int) -> None:
    """Raise KafkaError(INVALID_REPLICATION_FACTOR) for anything but the default (-1) and 1."""
    if factor not in (-1, 1):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"topic {name} with {factor} replicas: this cluster has 1 broker, use 1 or -1",
        )


def check_assignment(broker: Broker, partition: str, broker_ids: list[int]) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) unless the partition is given to this broker alone."""
    if broker_ids != [broker.node_id]:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{partition} on brokers {broker_ids}: this cluster has only broker {broker.node_id}",
        )
