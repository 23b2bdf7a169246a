"""DeleteAcls, 1 to 3: without an authorizer each is refused with SECURITY_DISABLED, as by Apache Kafka."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from logd.api.request.context import RequestContext

REQUEST = DeleteAclsRequest


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Refuse one by one."""
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
