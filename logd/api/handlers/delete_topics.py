"""DeleteTopics, 1 to 6: by name, from version 6 on also by topic id.

A topic that is named twice, or by its name and its id, is refused and kept, as by Apache Kafka.
"""

from __future__ import annotations

from collections import Counter

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from logd.api.request.context import RequestContext
from logd.api.request.mutations import check_mutations, count_mutations, mutation_throttle_ms
from logd.broker.topics.catalog import TopicCatalog

REQUEST = DeleteTopicsRequest
STRICT_FROM = 5
"""First version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Answer topic by topic; TOPIC_DELETION_DISABLED where delete.topic.enable is false."""
    times = Counter((state.name, state.topic_id) for state in _requested_topics(request))
    by_name_and_id = _named_by_name_and_id(times, context.broker.catalog)
    results = []
    for (name, topic_id), count in times.items():
        if topic_id in by_name_and_id:
            continue  # the answer for its name says so
        result = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            _check_named_once(result, count, by_name_and_id)
            await _delete(context, result)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return DeleteTopicsResponse(throttle_time_ms=mutation_throttle_ms(context), responses=results)


def refused(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    """Return the response for when the controller cannot be reached."""
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code)
            for state in _requested_topics(request)
        ]
    )


def _requested_topics(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def _named_by_name_and_id(
    times: Counter[tuple[str | None, bytes]], catalog: TopicCatalog
) -> dict[bytes, str]:
    """Return the topics that the request names in both ways, by id."""
    ids = {topic_id for name, topic_id in times if name is None}
    topics = (
        catalog.topics.get(name) for name, topic_id in times if name is not None and topic_id == NO_UUID
    )
    return {topic.topic_id: topic.name for topic in topics if topic is not None and topic.topic_id in ids}


def _check_named_once(result: DeletableTopicResult, count: int, by_name_and_id: dict[bytes, str]) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a topic that the request names several times."""
    if (result.topic_id != NO_UUID) == (result.name is not None):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "name a topic either by its name or by its id")
    if count > 1:
        called = result.name if result.name is not None else f"of id {result.topic_id.hex()}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {called} stands in the request {count} times")
    if result.name in by_name_and_id.values():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"topic {result.name} stands in the request by its name and by its id"
        )


async def _delete(context: RequestContext, result: DeletableTopicResult) -> None:
    """Delete the topic of this name or id, and set the other one. Raises KafkaError."""
    if not context.broker.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if context.version >= 3 else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "topics are not deleted here: delete.topic.enable is false")
    catalog = context.broker.catalog
    topic = catalog.find(result.name) if result.name is not None else catalog.find_by_id(result.topic_id)
    result.name, result.topic_id = topic.name, topic.topic_id
    check_mutations(context, strict_from=STRICT_FROM)
    await context.broker.delete_topic(topic)
    count_mutations(context, len(topic.partitions))
