"""ListPartitionReassignments, 0: which partitions are on their way to other brokers (KIP-455).

On a standalone broker none ever is. Topics and partitions that do not exist are no error; as Apache Kafka,
the answer leaves them out.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.reassignment import list_reassignments

REQUEST = ListPartitionReassignmentsRequest


def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer topic by topic, of all or of those asked for."""
    requested = None
    if request.topics is not None:
        requested = {
            TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
        }
    topics: dict[str, OngoingTopicReassignment] = {}
    for tp, state in list_reassignments(context.broker.image, requested).items():
        topic = topics.setdefault(tp.topic, OngoingTopicReassignment(name=tp.topic))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=tp.partition,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
        )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()))


def refused(
    request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> ListPartitionReassignmentsResponse:
    """Return the response for when the controller cannot be reached."""
    return ListPartitionReassignmentsResponse(error_code=code)
