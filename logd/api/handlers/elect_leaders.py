"""ElectLeaders, 0 to 2 (KIP-183, KIP-460): the controller elects.

A standalone broker leads every partition already, except for those in a log directory that is offline, which
cannot have a leader.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.partition.partition import Partition
from logd.metadata.controller.election import ElectionType

REQUEST = ElectLeadersRequest

NO_LEADER = {
    0: (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    1: (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."),
}
"""By election type, of the preferred replica and unclean: the answer for a partition that is offline."""


async def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Answer partition by partition. Asked for all, those that need an election."""
    if context.broker.cluster.is_standalone:
        return _elected_here(request, context)
    if request.election_type not in NO_LEADER:
        return refused(request, ErrorCode.INVALID_REQUEST)
    kind, requested = ElectionType(request.election_type), _requested(request)
    try:
        elected = await context.broker.catalog.decide(
            lambda controller: controller.elect_leaders(kind, requested)
        )
    except KafkaError as error:
        return refused(request, error.code)
    topics: dict[str, ReplicaElectionResult] = {}
    for tp, why_not in elected.items():
        topic = topics.setdefault(tp.topic, ReplicaElectionResult(topic=tp.topic))
        result = PartitionResult(partition_id=tp.partition)
        if why_not is not None:
            result.error_code, result.error_message = why_not.code, why_not.message
        topic.partition_result.append(result)
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def _requested(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [
        TopicPartition(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
    ]


def refused(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    """Return the response for when the controller cannot be reached, cannot write, or refuses the request."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=requested.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code) for index in requested.partitions
                ],
            )
            for requested in request.topic_partitions or ()
        ],
    )


def _elected_here(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Answer on a standalone broker, with Apache Kafka's messages."""
    asked_for = request.topic_partitions
    if asked_for is None:
        asked_for = _without_leader(context.broker)
    results = [
        ReplicaElectionResult(
            topic=tp.topic,
            partition_result=[
                _result(context.broker, request.election_type, tp.topic, index) for index in tp.partitions
            ],
        )
        for tp in asked_for
    ]
    bad_type = request.election_type not in NO_LEADER and request.topic_partitions != []
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST if bad_type else ErrorCode.NONE,
        replica_election_results=results,
    )


def _without_leader(broker: Broker) -> list[TopicPartitions]:
    offline = (
        TopicPartitions(
            topic=name, partitions=[index for index, p in enumerate(topic.partitions) if not _leads(p)]
        )
        for name, topic in broker.catalog.topics.items()
    )
    return [topic for topic in offline if topic.partitions]


def _leads(partition: Partition | None) -> bool:
    """Return True if the broker leads the partition: its log is here, in a log directory that serves."""
    return partition is not None and not partition.is_offline


def _result(broker: Broker, election_type: int, name: str, index: int) -> PartitionResult:
    topic = broker.catalog.topics.get(name)
    if election_type not in NO_LEADER:
        code, message = ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}"
    elif topic is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < len(topic.partitions):
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    elif not _leads(topic.partitions[index]):
        code, message = NO_LEADER[election_type]
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
