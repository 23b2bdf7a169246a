"""DescribeClientQuotas, 0 to 1 (KIP-546): there are no quotas. `kafka-configs` asks for those of users."""

from __future__ import annotations

from kafka_client.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from logd.api.request.context import RequestContext

REQUEST = DescribeClientQuotasRequest


def handle(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
    """Return an empty list."""
    return DescribeClientQuotasResponse(error_message=None, entries=[])
