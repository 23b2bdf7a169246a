"""Faults that clients of Kafka meet now and then, and that a test can cause at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.testing.host import Host


class NodeFaults:
    """The faults of any broker, also of one in a cluster.

    Each takes effect on return. `clean`, which the fixtures call, removes pending faults.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def drop_connections(self) -> None:
        """Close all connections without answering pending requests. Clients may connect again at once."""
        self._host.ask("drop_connections")

    def lose_answers(self, api: str, count: int = 1) -> None:
        """Carry out the next `count` requests of an API, and close the connection instead of answering.

        The client cannot know whether its request was carried out. `api` is Kafka's name: "Produce" (a lost
        acknowledgement), "OffsetCommit", "EndTxn", "CreateTopics" ... Raises BrokerError for an unknown name.
        """
        self._host.ask("lose_answers", api=api, count=count)

    def slow_disk(self, seconds: float) -> None:
        """Delay each write and each sync by `seconds` until `heal_disk`.

        The whole broker waits for the disk.
        """
        self._host.ask("slow_disk", seconds=seconds)

    def full_disk(self, room: int = 0) -> None:
        """Let `room` more bytes be written; a write that does not fit fails.

        The log directory goes offline and the broker stops, as this is its only one. `Broker.restart` starts
        it again, with room on the disk.
        """
        self._host.ask("full_disk", room=room)

    def heal_disk(self) -> None:
        """Remove the faults of the disk."""
        self._host.ask("heal_disk")


class Faults(NodeFaults):
    """The faults of a standalone broker, which coordinates every group and transaction."""

    def move_coordinators(self) -> None:
        """Take the groups and transactions away from this broker, until a client looks for them.

        Requests, also waiting ones, are answered with NOT_COORDINATOR. A FindCoordinator request brings the
        coordinators back, with the state in their log, as another broker would load it.
        """
        self._host.ask("move_coordinators")

    def fence(self, transactional_id: str) -> int:
        """Fence the producer of this id, as a second producer does, and abort its open transaction.

        Return the new epoch; requests with an older one are answered with PRODUCER_FENCED or
        INVALID_PRODUCER_EPOCH. Raises BrokerError for an unknown id.
        """
        epoch: int = self._host.ask("fence", transactional_id=transactional_id)
        return epoch
