"""CreateAcls, 1 to 3: without an authorizer each is refused with SECURITY_DISABLED, as by Apache Kafka."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from logd.api.request.context import RequestContext

REQUEST = CreateAclsRequest


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Refuse one by one."""
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused] * len(request.creations))
