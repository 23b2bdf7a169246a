"""LeaveGroup, 0 to 5: members go, from version 3 on several at once (KIP-345)."""

from __future__ import annotations

from typing import Final

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from logd.api.request.context import RequestContext

REQUEST = LeaveGroupRequest

BATCHED_FROM: Final = 3


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Answer once they are gone. Before version 3 the one member's error is the error of the whole."""
    single = context.version < BATCHED_FROM
    if single:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        response = await context.broker.groups.partition(request.group_id).leave(request)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    if single and response.members:
        response.error_code = response.members[0].error_code
    return response
