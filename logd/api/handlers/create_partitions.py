"""CreatePartitions, 0 to 3: topics grow, never shrink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from logd.api.handlers.create_topics import check_assignment
from logd.api.request.context import RequestContext
from logd.api.request.mutations import check_mutations, count_mutations, mutation_throttle_ms
from logd.broker.broker import Broker
from logd.metadata.decisions import check_growth

REQUEST = CreatePartitionsRequest
STRICT_FROM = 3
"""First version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Answer topic by topic; a topic named twice is refused."""
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name} stands in the request twice")
            await _grow(context, topic, request.validate_only)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results[topic.name] = result
    return CreatePartitionsResponse(
        throttle_time_ms=mutation_throttle_ms(context), results=list(results.values())
    )


def refused(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    """Return the response for when the controller cannot be reached."""
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in request.topics]
    )


async def _grow(context: RequestContext, growth: CreatePartitionsTopic, validate_only: bool) -> None:
    broker = context.broker
    topic = broker.catalog.topics.get(growth.name)
    partitions = 0 if topic is None else len(topic.partitions)
    assignments = None
    if growth.assignments is not None:
        assignments = [row.broker_ids for row in growth.assignments]
    if broker.cluster.is_standalone:
        _check_growth_here(broker, growth.name, growth.count, assignments)
    if topic is not None:
        check_mutations(context, strict_from=STRICT_FROM)
    if not (broker.cluster.is_standalone and validate_only):
        await broker.catalog.grow(growth.name, growth.count, assignments, validate_only=validate_only)
    count_mutations(context, growth.count - partitions)


def _check_growth_here(
    broker: Broker, name: str, count: int, assignments: Sequence[list[int]] | None
) -> None:
    """Check that all assigned replicas are on this standalone broker. Raises KafkaError if not."""
    topic = broker.catalog.find(name)
    check_growth(topic.image, count)
    if assignments is not None:
        added = count - len(topic.partitions)
        if len(assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"topic {name} gets {added} partitions, {len(assignments)} are assigned",
            )
        for index, broker_ids in enumerate(assignments, len(topic.partitions)):
            check_assignment(broker, f"{name}-{index}", broker_ids)
