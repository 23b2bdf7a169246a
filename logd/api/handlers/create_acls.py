"""CreateAcls, 1 to 3: without an authorizer each is refused with SECURITY_DISABLED, as by Apache Kafka."""

from __future__ import annotations

from logd.api.request.context import RequestContext
from logd.errors import ErrorCode
from logd.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

REQUEST = CreateAclsRequest


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Refuse one by one."""
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused] * len(request.creations))
