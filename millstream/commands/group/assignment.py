"""The assignment of a member of a classic consumer group: partitions, as encoded by the group's leader."""

from __future__ import annotations

from kafka_client import TopicPartition
from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode_versioned
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment


def decode_assignment(assignment: bytes) -> list[TopicPartition]:
    """Return the assigned partitions; none if the bytes are empty or not a consumer assignment."""
    try:
        decoded = decode_versioned(ConsumerProtocolAssignment, assignment) if assignment else None
    except MalformedMessage:
        decoded = None
    return [
        TopicPartition(topic.topic, partition)
        for topic in (decoded.assigned_partitions if decoded else ())
        for partition in topic.partitions
    ]
