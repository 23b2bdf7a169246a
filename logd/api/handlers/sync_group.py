"""SyncGroup, 0 to 5: a member asks for its assignment, the leader brings everybody's.

The rules stand in `logd.groups.sync`.
"""

from __future__ import annotations

from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from logd.api.request.context import RequestContext

REQUEST = SyncGroupRequest

PROTOCOL_REQUIRED_FROM: Final = 5


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """Answer when the leader's assignment is stored. Version 5 requires protocol type and name."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= PROTOCOL_REQUIRED_FROM and not named:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return await context.broker.groups.partition(request.group_id).sync(request)
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
