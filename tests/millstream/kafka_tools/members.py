"""Members of groups that stay while a transcript is played."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from tests.support.waiting import wait_for


@dataclass
class _Member:
    consumer: Consumer
    stopped: threading.Event = field(default_factory=threading.Event)
    assigned: threading.Event = field(default_factory=threading.Event)

    def poll(self) -> None:
        while not self.stopped.is_set():
            self.consumer.poll(0.05)
        self.consumer.close()


class Members:
    """Members of groups by their clients' ids."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._members: dict[str, tuple[_Member, threading.Thread]] = {}

    def join(
        self, group: str, topic: str, client: str, protocol: str = "classic", instance: str | None = None
    ) -> None:
        """Start a member and wait until it has its partitions. It commits nothing."""
        settings: dict[str, object] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": group,
            "client.id": client,
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            # What a member that joins later has to wait for.
            settings["heartbeat.interval.ms"] = 100
        if instance is not None:
            settings["group.instance.id"] = instance
        member = _Member(Consumer(settings))
        member.consumer.subscribe([topic], on_assign=lambda *_: member.assigned.set())
        thread = threading.Thread(target=member.poll)
        thread.start()
        self._members[client] = (member, thread)
        wait_for(member.assigned.is_set)

    def leave(self, client: str) -> None:
        """Stop a member, so that it leaves its group."""
        member, thread = self._members.pop(client)
        member.stopped.set()
        thread.join()

    def commit(self, group: str, partition: str, offset: str) -> None:
        """Commit a group's offset without being a member."""
        topic, _, number = partition.partition(":")
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, int(number), int(offset))], asynchronous=False)
        consumer.close()

    def close(self) -> None:
        """Stop all members."""
        for client in list(self._members):
            self.leave(client)
