"""DescribeCluster, 0 to 2: the cluster's id, its brokers and its controller (KIP-700)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from logd.api.operations import CLUSTER_OPERATIONS, NOT_ASKED
from logd.api.request.context import RequestContext

REQUEST = DescribeClusterRequest

BROKERS = 1
"""The endpoint type of brokers; controllers (2) have no listener of their own here."""


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """Return the brokers that are alive, with their addresses for the listener that the client used."""
    broker = context.broker
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type}; this listener is for brokers, {BROKERS}",
            endpoint_type=BROKERS,
        )
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.cluster.controller,
        brokers=[
            DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.cluster.nodes(context.endpoint)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
