"""DeleteAcls, 1 to 3: without an authorizer each is refused with SECURITY_DISABLED, as by Apache Kafka."""

from __future__ import annotations

from logd.api.request.context import RequestContext
from logd.errors import ErrorCode
from logd.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

REQUEST = DeleteAclsRequest


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Refuse one by one."""
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
