"""What a member of a classic group of consumers is assigned: partitions, in the bytes its leader made."""

from __future__ import annotations

from logd.client import TopicPartition
from logd.errors import MalformedMessage
from logd.wire import decode_versioned
from logd.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment


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
