"""DescribeQuorum, 0 to 2: refused, because there is no quorum of controllers (KIP-595)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from logd.api.request.context import RequestContext

REQUEST = DescribeQuorumRequest


def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Answer UNSUPPORTED_VERSION. Java's admin client throws it with the text (from version 2 on)."""
    return DescribeQuorumResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message=(
            f"broker {context.broker.node_id} keeps the cluster's metadata by itself: "
            "there is no quorum of controllers to describe"
        ),
    )
