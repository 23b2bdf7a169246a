"""CreatePartitions, 0 to 3: topics grow, never shrink."""

from __future__ import annotations

from collections import Counter

from logd.api.context import RequestContext
from logd.api.create_topics import check_assignment
from logd.errors import ErrorCode, KafkaError
from logd.metadata.decisions import check_growth
from logd.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

REQUEST = CreatePartitionsRequest


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
    return CreatePartitionsResponse(results=list(results.values()))


async def _grow(context: RequestContext, asked: CreatePartitionsTopic, validate_only: bool) -> None:
    catalog = context.broker.catalog
    topic = catalog.find(asked.name)
    check_growth(topic.image, asked.count)
    if asked.assignments:
        added = asked.count - len(topic.partitions)
        if len(asked.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"topic {asked.name} gets {added} partitions, {len(asked.assignments)} are assigned",
            )
        for index, row in enumerate(asked.assignments, len(topic.partitions)):
            check_assignment(context.broker, f"{asked.name}-{index}", row.broker_ids)
    if not validate_only:
        await catalog.grow(asked.name, asked.count)
