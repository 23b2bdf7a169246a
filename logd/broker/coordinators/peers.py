"""The seam to the other brokers of the cluster: who leads what, and how to ask another broker.

A single node has neither: whoever takes them takes None there, and nothing else is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from kafka_client.wire.message import Message

NO_LEADER = -1
"""As a broker's id: the partition has no leader now."""


class Peers(Protocol):
    """Connections to the other brokers. They know a request's answer by the request's class."""

    async def request(self, broker_id: int, message: Message) -> Message:
        """The broker's answer, by the newest version of the API that both know.

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
        """A broker's id, NO_LEADER where there is none now, None where there is no such partition."""

    def leadership_of(self, where: TopicPartition) -> Leadership | None:
        """Return who leads in which leader epoch; None where there is no such partition."""


class Cluster(NamedTuple):
    """What a part of the broker needs to have work done by other brokers."""

    leaders: Leaders
    peers: Peers
