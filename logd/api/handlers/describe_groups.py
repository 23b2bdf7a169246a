"""DescribeGroups, 0 to 6: state and members of groups.

From version 3 on the operations the client may carry out, from 6 on an error for groups that do not exist.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from logd.api.operations import GROUP_OPERATIONS
from logd.api.request.context import RequestContext

REQUEST = DescribeGroupsRequest


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """Answer group by group, once what is told cannot be lost any more."""
    described = [await _describe(group_id, context) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


async def _describe(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        partition = context.broker.groups.partition(group_id)
        described = partition.shard.describe(group_id, context.version)
        await partition.flushed()
        return described
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
