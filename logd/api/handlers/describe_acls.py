"""DescribeAcls, 1 to 3: refused with SECURITY_DISABLED, as by Apache Kafka without an authorizer."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from logd.api.request.context import RequestContext

REQUEST = DescribeAclsRequest


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Refuse."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
