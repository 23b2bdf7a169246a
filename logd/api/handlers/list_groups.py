"""ListGroups, 0 to 5: all groups of this broker, filtered by state from version 4 on, by type from 5 on."""

from __future__ import annotations

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from logd.api.request.context import RequestContext

REQUEST = ListGroupsRequest


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """Answer with all, or with an error while some are still being recovered."""
    try:
        return ListGroupsResponse(groups=await context.broker.groups.matching(request))
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
