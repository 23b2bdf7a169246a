"""ClusterUpdate, 0: what the controller tells this broker of the cluster."""

from __future__ import annotations

from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.api.cluster_member import member_of
from logd.api.request.context import RequestContext

REQUEST = ClusterUpdateRequest


async def handle(request: ClusterUpdateRequest, context: RequestContext) -> ClusterUpdateResponse:
    """Answer once it is applied."""
    return await member_of(context.broker).take(request)
