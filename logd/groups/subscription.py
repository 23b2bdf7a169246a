"""The part of the consumer protocol that a coordinator reads: topics of subscriptions, the empty assignment.

The rest of a member's metadata is only for clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER: Final = "consumer"
"""The protocol type of consumers."""

EMPTY_ASSIGNMENT: Final = bytes.fromhex("0000 00000000 ffffffff")
"""A ConsumerProtocolAssignment of version 0 with no partitions and no user data."""


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str]:
    """Return the topics of all subscriptions; raises MalformedMessage if one is no subscription.

    Version 0 is a prefix of all later versions, so it is enough for the topics.
    """
    topics: set[str] = set()
    for subscription in subscriptions:
        if len(subscription) < 2 or struct.unpack_from(">h", subscription)[0] < 0:
            raise MalformedMessage("not a consumer protocol subscription")
        topics.update(decode(ConsumerProtocolSubscription, 0, subscription, 2).topics)
    return frozenset(topics)


def missing_assignment(protocol_type: str | None) -> bytes:
    """Return the assignment of a member for which the leader sent none.

    Consumers parse every assignment, so they get a valid empty one. Members of other protocol types get no
    bytes, as from Apache Kafka.
    """
    return EMPTY_ASSIGNMENT if protocol_type == CONSUMER else b""
