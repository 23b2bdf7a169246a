"""The consumer protocol: subscriptions sent to the group's leader, and its assignments (KIP-54, KIP-429)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ConfigError
from kafka_client.fetcher.offsets import by_topic
from kafka_client.group.assignors import ASSIGNORS, Subscription
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import decode_versioned, encode_versioned
from kafka_client.wire.messages import consumer_protocol_assignment as assignment_message
from kafka_client.wire.messages import consumer_protocol_subscription as subscription_message
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 1
"""Later versions add no field that is used here, and every consumer can read this version."""


class ConsumerProtocol:
    """The consumer group protocol with one assignor.

    `subscription` returns what this member subscribes to and owns at the time of the call.
    `assigned_by_counts` has the partition count of each topic when this member, as the group's leader, last
    assigned partitions. The leader compares it with the topics' present counts.
    """

    def __init__(self, name: str, client: Client, subscription: Callable[[], Subscription]) -> None:
        if name not in ASSIGNORS:
            raise ConfigError("assignors", name, f"any of {', '.join(ASSIGNORS)}")
        self.name = name
        self.assigned_by_counts: Mapping[str, int] = {}
        self._client = client
        self._subscription = subscription

    def metadata(self) -> bytes:
        """Return this member's encoded subscription."""
        return encode_subscription(self._subscription())

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Assign all partitions of the members' topics that exist; return encoded assignments by member."""
        subscriptions = {member: decode_subscription(data) for member, data in members.items()}
        topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        counts = await partition_counts(self._client, topics)
        self.assigned_by_counts = counts
        assignment = ASSIGNORS[self.name](subscriptions, counts)
        return {member: encode_assignment(tps) for member, tps in assignment.items()}


async def partition_counts(client: Client, topics: Iterable[str]) -> dict[str, int]:
    """Return the current partition count of each topic, 0 if a topic does not exist."""
    names = set(topics)
    metadata = await client.metadata(names, refresh=True, allow_missing=True)
    return {
        name: metadata.topics[name].partition_count if name in metadata.topics else 0
        for name in sorted(names)
    }


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode a subscription for JoinGroup."""
    return encode_versioned(
        ConsumerProtocolSubscription(
            topics=sorted(subscription.topics),
            owned_partitions=[
                subscription_message.TopicPartition(topic=topic, partitions=sorted(partitions))
                for topic, partitions in sorted(by_topic(subscription.owned).items())
            ],
            generation_id=subscription.generation,
        ),
        SUBSCRIPTION_VERSION,
    )


def decode_subscription(data: bytes) -> Subscription:
    """Decode a member's subscription. Raises MalformedMessage."""
    message = decode_versioned(ConsumerProtocolSubscription, data)
    owned = [TopicPartition(t.topic, p) for t in message.owned_partitions for p in t.partitions]
    return Subscription(message.topics, owned, message.generation_id)


def encode_assignment(tps: Iterable[TopicPartition]) -> bytes:
    """Encode an assignment for SyncGroup."""
    return encode_versioned(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                assignment_message.TopicPartition(topic=topic, partitions=sorted(partitions))
                for topic, partitions in sorted(by_topic(tps).items())
            ]
        ),
        ASSIGNMENT_VERSION,
    )


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Decode the partitions of an assignment; empty bytes are no partitions. Raises MalformedMessage."""
    if not data:
        return []
    message = decode_versioned(ConsumerProtocolAssignment, data)
    return [TopicPartition(t.topic, p) for t in message.assigned_partitions for p in t.partitions]
