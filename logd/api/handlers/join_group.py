"""JoinGroup, 0 to 9: become a member of a group, or stay one; the answer comes when the next generation
begins.

The rules, and what each version brought, stand in `logd.groups.join`.
"""

from __future__ import annotations

from typing import Final

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from logd.api.request.context import RequestContext

REQUEST = JoinGroupRequest

NULL_PROTOCOL_FROM: Final = 7


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """Answer when the group is complete, at once where nothing has to be waited for."""
    version = context.version
    groups = context.broker.groups
    try:
        response = await groups.join(request, version, context.client_id, context.client_host)
    except KafkaError as error:
        response = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    if version < NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
