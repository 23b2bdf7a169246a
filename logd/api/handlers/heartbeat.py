"""Heartbeat, 0 to 4: a member lives, and learns whether it has to join again."""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from logd.api.request.context import RequestContext

REQUEST = HeartbeatRequest


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Answer at once. While the group is being recovered any heartbeat will do: sessions begin after it."""
    groups = context.broker.groups
    try:
        return groups.partition(request.group_id).shard.heartbeat(request, groups.now_ms)
    except KafkaError as error:
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
