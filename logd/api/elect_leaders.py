"""ElectLeaders, 0 to 2: the one broker leads all partitions already, none is elected (KIP-183, KIP-460)."""

from __future__ import annotations

from logd.api.context import RequestContext
from logd.broker.broker import Broker
from logd.errors import ErrorCode
from logd.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

REQUEST = ElectLeadersRequest

ELECTION_TYPES = (0, 1)
"""Of the preferred replica, and unclean."""


def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Answer partition by partition, with Apache Kafka's messages. Asked for all, it has none to tell of."""
    results = [
        ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[
                _result(context.broker, request.election_type, asked.topic, index)
                for index in asked.partitions
            ],
        )
        for asked in request.topic_partitions or ()
    ]
    bad_type = request.election_type not in ELECTION_TYPES and request.topic_partitions != []
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST if bad_type else ErrorCode.NONE,
        replica_election_results=results,
    )


def _result(broker: Broker, election_type: int, name: str, index: int) -> PartitionResult:
    topic = broker.catalog.topics.get(name)
    if election_type not in ELECTION_TYPES:
        code, message = ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}"
    elif topic is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < len(topic.partitions):
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
