"""Groups of KIP-848's protocol, which DescribeGroups does not know, described as classic ones."""

from __future__ import annotations

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ErrorCode
from kafka_client.group.coordinator import ask_coordinator, coordinator_error
from kafka_client.wire import encode_versioned
from kafka_client.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition


async def ask_consumer_group(client: Client, group_id: str) -> DescribedGroup | None:
    """Return the group, or None if it does not exist or the coordinator does not know the protocol.

    The request is sent once. Raises KafkaError by the group's error code.
    """
    connection = await client.connection(await client.coordinator(group_id))
    if ConsumerGroupDescribeRequest.API_KEY not in connection.versions:
        return None
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    response: ConsumerGroupDescribeResponse = await ask_coordinator(client, group_id, request)
    (group,) = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if group.error_code:
        raise coordinator_error(client, group_id, group.error_code)
    return group


def as_classic(assignment: Assignment) -> bytes:
    """Return the assignment encoded as for a classic member."""
    topics = [
        TopicPartition(topic=topic.topic_name, partitions=topic.partitions)
        for topic in assignment.topic_partitions
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=topics), 0)
