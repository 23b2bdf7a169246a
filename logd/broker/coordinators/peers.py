"""The interface to the other brokers of the cluster: who leads a partition, and how to send a request.

A standalone broker has neither: parameters of these types are None there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from kafka_client.wire.message import Message

NO_LEADER = -1
"""The broker id that means: the partition has no leader now."""


class Peers(Protocol):
    """Connections to the other brokers. They know a request's answer by the request's class."""

    async def request(self, broker_id: int, message: Message) -> Message:
        """Return the broker's response, in the newest version of the API that both brokers support.

        Raises ConnectionClosed, RequestTimedOut, or KafkaError where nobody knows the broker: nothing is
        known then of what became of the request.
        """


class Leadership(NamedTuple):
    """Who leads a partition. `topic_id` tells the topic from a deleted one of the same name."""

    leader: int
    """A broker's id, NO_LEADER where there is none now."""
    epoch: int
    topic_id: bytes


class Leaders(Protocol):
    """Who leads a partition, by the metadata applied here."""

    broker_id: int
    """This broker."""

    def leader_of(self, where: TopicPartition) -> int | None:
        """Return the leader's broker id, NO_LEADER if there is none now, or None for an unknown partition."""

    def leadership_of(self, where: TopicPartition) -> Leadership | None:
        """Return the partition's leader and leader epoch, or None if there is no such partition."""


class Cluster(NamedTuple):
    """The leaders and connections by which a part of this broker has work done by other brokers."""

    leaders: Leaders
    peers: Peers
