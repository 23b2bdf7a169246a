"""CreateTopics, 2 to 7: each topic is created or refused by itself; validate-only requests change nothing.

Without a number of partitions or replicas (-1) the broker's defaults hold. One broker can hold one replica.
From version 5 on the answer carries the topic's settings.
"""

from __future__ import annotations

from collections import Counter

from logd.api.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.configs import described_topic_configs
from logd.errors import ErrorCode, KafkaError
from logd.wire.message import NO_UUID
from logd.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

REQUEST = CreateTopicsRequest


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
            result = await _create(context.broker, topic, request.validate_only)
        except KafkaError as error:
            result = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message, configs=None
            )
        results[topic.name] = result
    return CreateTopicsResponse(topics=list(results.values()))


async def _create(broker: Broker, topic: CreatableTopic, validate_only: bool) -> CreatableTopicResult:
    configs = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name} needs a value")
        configs[config.name] = config.value
    partitions = _partitions(broker, topic)
    if validate_only:
        broker.catalog.check_creation(topic.name, partitions, configs)
        topic_id = NO_UUID
    else:
        topic_id = (await broker.catalog.create(topic.name, partitions, configs)).topic_id
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=partitions,
        replication_factor=1,
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


def _partitions(broker: Broker, topic: CreatableTopic) -> int:
    if not topic.assignments:
        check_replication_factor(topic.name, topic.replication_factor)
        if topic.num_partitions == -1:
            return broker.config.num_partitions
        return topic.num_partitions
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
    for row in topic.assignments:
        check_assignment(broker, f"{topic.name}-{row.partition_index}", row.broker_ids)
    return len(topic.assignments)


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
