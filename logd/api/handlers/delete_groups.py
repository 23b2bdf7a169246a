"""DeleteGroups, 0 to 2: forget groups without members, and their offsets (KIP-229)."""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from logd.api.request.context import RequestContext

REQUEST = DeleteGroupsRequest


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Answer group by group; one that is named twice has one answer."""
    return DeleteGroupsResponse(
        results=[await _delete(group_id, context) for group_id in dict.fromkeys(request.groups_names)]
    )


async def _delete(group_id: str, context: RequestContext) -> DeletableGroupResult:
    groups = context.broker.groups
    try:
        partition = groups.partition(group_id)
        result = partition.shard.delete(group_id, groups.now_ms)
        await partition.flushed()
        return result
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
