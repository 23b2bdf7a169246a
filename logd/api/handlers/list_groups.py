"""ListGroups, 0 to 5: all groups of this broker, filtered by state from version 4 on, by type from 5 on."""

from __future__ import annotations

from logd.api.request.context import RequestContext
from logd.errors import KafkaError
from logd.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

REQUEST = ListGroupsRequest


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """Answer with all, or with an error while some are still being recovered."""
    try:
        return ListGroupsResponse(groups=await context.broker.groups.matching(request))
    except KafkaError as error:
        return ListGroupsResponse(error_code=error.code)
