"""AlterPartitionReassignments, 0 to 1: partitions go to other brokers, or come back (KIP-455).

On a standalone broker all replicas are on that broker. Only the replicas that a partition has may be
requested, which is done at once, and there is nothing to cancel. Moves between a broker's log directories are
AlterReplicaLogDirs'; Kafka's kafka-reassign-partitions sends both.
"""

from __future__ import annotations

from itertools import pairwise

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker

REQUEST = AlterPartitionReassignmentsRequest


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Answer partition by partition: whether the reassignment has begun, or why not."""
    if context.broker.cluster.is_standalone:
        return _reassigned_here(request, context)
    targets = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in request.topics
        for partition in topic.partitions
    }
    try:
        reassigned = await context.broker.catalog.decide(
            lambda controller: controller.alter_reassignments(
                targets, allow_factor_change=request.allow_replication_factor_change
            )
        )
    except KafkaError as error:
        return refused(request, error.code)
    topics: dict[str, ReassignableTopicResponse] = {}
    for tp, why_not in reassigned.items():
        topic = topics.setdefault(tp.topic, ReassignableTopicResponse(name=tp.topic))
        result = ReassignablePartitionResponse(partition_index=tp.partition)
        if why_not is not None:
            result.error_code, result.error_message = why_not.code, why_not.message
        topic.partitions.append(result)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=list(topics.values()),
    )


def refused(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    """Return the response for when the controller cannot be reached, or cannot write."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=code,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassigned_here(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Answer on a standalone broker, with Apache Kafka's messages."""
    responses = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            result = ReassignablePartitionResponse(partition_index=partition.partition_index)
            try:
                _check_partition(context.broker, topic.name, partition)
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message or None
            results.append(result)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )


def _check_partition(broker: Broker, name: str, partition: ReassignablePartition) -> None:
    topic = broker.catalog.topics.get(name)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        raise KafkaError(unknown, f"Unable to find a topic named {name}.")
    if not 0 <= partition.partition_index < len(topic.partitions):
        raise KafkaError(unknown, f"Unable to find partition {name}:{partition.partition_index}.")
    if partition.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if (refusal := _refusal(partition.replicas, broker.node_id)) is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {refusal}"
        )


def _refusal(replicas: list[int], node_id: int) -> str | None:
    """Return what is wrong with a partition's replicas, or None if they are this broker alone, named once."""
    if not replicas:
        return "an empty replica list."
    for before, broker_id in pairwise([None, *sorted(replicas)]):
        if broker_id == before:
            return f"the broker {broker_id} more than once."
        if broker_id != node_id:
            return f"broker {broker_id}, but no such broker is registered."
    return None
