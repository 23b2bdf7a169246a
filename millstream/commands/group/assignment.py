"""What a member of a classic group of consumers is assigned: partitions, in the bytes its leader made."""

from __future__ import annotations

from kafka_client import TopicPartition
from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode_versioned
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment


def decode_assignment(assignment: bytes) -> list[TopicPartition]:
    """The partitions as they stand there; none where the bytes are empty, or something else."""
    try:
        decoded = decode_versioned(ConsumerProtocolAssignment, assignment) if assignment else None
    except MalformedMessage:
        decoded = None
    return [
        TopicPartition(topic.topic, partition)
        for topic in (decoded.assigned_partitions if decoded else ())
        for partition in topic.partitions
    ]
