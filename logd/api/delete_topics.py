"""DeleteTopics, 1 to 6: by name, from version 6 on also by topic id."""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.errors import ErrorCode, KafkaError
from logd.wire.message import NO_UUID
from logd.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

REQUEST = DeleteTopicsRequest


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Answer topic by topic; TOPIC_DELETION_DISABLED where delete.topic.enable is false."""
    return DeleteTopicsResponse(responses=[await _delete(context, state) for state in _asked(request)])


def refused(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    """The answer where the controller cannot be asked."""
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code)
            for state in _asked(request)
        ]
    )


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


async def _delete(context: RequestContext, asked: DeleteTopicState) -> DeletableTopicResult:
    catalog = context.broker.catalog
    by_id = asked.topic_id != NO_UUID
    result = DeletableTopicResult(name=asked.name, topic_id=asked.topic_id)
    try:
        if by_id == (asked.name is not None):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "name a topic either by its name or by its id")
        if not context.broker.config.delete_topic_enable:
            code = ErrorCode.TOPIC_DELETION_DISABLED if context.version >= 3 else ErrorCode.INVALID_REQUEST
            raise KafkaError(code, "topics are not deleted here: delete.topic.enable is false")
        topic = catalog.find_by_id(asked.topic_id) if by_id else catalog.find(asked.name or "")
        result.name, result.topic_id = topic.name, topic.topic_id
        await context.broker.delete_topic(topic)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result
