"""What a Kafka does to its clients now and then, and a test can have at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.testing.host import Host


class NodeFaults:
    """What can befall any broker, also one of several.

    Each takes effect on return. `clean`, which the fixtures call, takes back what still waits.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def drop_connections(self) -> None:
        """Close all connections; what clients wait for stays unanswered. They may come again at once."""
        self._host.ask("drop_connections")

    def lose_answers(self, api: str, count: int = 1) -> None:
        """Carry out the next `count` requests of an API, and close the connection instead of answering.

        The client cannot know whether its request was carried out. `api` is Kafka's name: "Produce" (a lost
        acknowledgement), "OffsetCommit", "EndTxn", "CreateTopics" ... BrokerError for one that is none.
        """
        self._host.ask("lose_answers", api=api, count=count)

    def slow_disk(self, seconds: float) -> None:
        """Have each write and each fsync take so much longer, until `heal_disk`; everything waits for it."""
        self._host.ask("slow_disk", seconds=seconds)

    def full_disk(self, room: int = 0) -> None:
        """Let `room` bytes more be written. A write that does not fit fails; the log folder goes offline and,
        as it is the only one, the broker stops. `Broker.restart` brings it back, with room.
        """
        self._host.ask("full_disk", room=room)

    def heal_disk(self) -> None:
        """Take the disk's faults back."""
        self._host.ask("heal_disk")


class Faults(NodeFaults):
    """And what can befall one that is all there is: it coordinates every group and every transaction."""

    def move_coordinators(self) -> None:
        """Take the groups and the transactions away from this broker, until a client looks for them.

        Requests are answered NOT_COORDINATOR, also those that wait for other members. With FindCoordinator
        the coordinators are here again, with what their log says, as another broker would have them.
        """
        self._host.ask("move_coordinators")

    def fence(self, transactional_id: str) -> int:
        """Fence the producer of this id, as a second one does at its start; its open transaction is aborted.

        Returns the new epoch; requests with an older one are answered PRODUCER_FENCED or
        INVALID_PRODUCER_EPOCH. BrokerError for an id that nobody uses.
        """
        epoch: int = self._host.ask("fence", transactional_id=transactional_id)
        return epoch
