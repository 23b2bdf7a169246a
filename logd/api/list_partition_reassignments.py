"""ListPartitionReassignments, 0: none is ever under way, since all replicas are on the one broker (KIP-455).

Topics and partitions that do not exist are no error; as Apache Kafka, the answer leaves them out.
"""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

REQUEST = ListPartitionReassignmentsRequest


def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer with an empty list."""
    return ListPartitionReassignmentsResponse()
