"""Which partitions a broker holds, leads and should lead: the indexes of the cluster's image.

They follow each applied change of a partition, so that what a broker's coming or going costs depends on what
that broker holds. Who is alive, and what is to be done about it, is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from typing import Protocol

from kafka_client.topic_partition import TopicPartition

_NOTHING: frozenset[TopicPartition] = frozenset()


class Assigned(Protocol):
    """The fields of a partition's state that the index uses."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Brokers that hold it; the first is preferred as leader."""

    @property
    def leader(self) -> int:
        """The broker that leads it; -1 for none."""

    @property
    def is_reassigning(self) -> bool:
        """True if replicas are being added or removed."""


class BrokerIndex:
    """``leaderless`` and ``reassigning`` are of the whole cluster, the rest is by broker.

    Sets returned are the index itself: look, and do not hold on to one beyond the next change.
    """

    __slots__ = ("_led", "_not_preferred", "_preferred", "_replicas", "leaderless", "reassigning")

    def __init__(self) -> None:
        self.leaderless: set[TopicPartition] = set()
        self.reassigning: set[TopicPartition] = set()
        self._replicas: dict[int, set[TopicPartition]] = defaultdict(set)
        self._led: dict[int, set[TopicPartition]] = defaultdict(set)
        self._preferred: dict[int, int] = defaultdict(int)
        self._not_preferred: dict[int, set[TopicPartition]] = defaultdict(set)

    def held_by(self, broker: int) -> Set[TopicPartition]:
        """Partitions of which the broker is a replica."""
        return self._replicas.get(broker, _NOTHING)

    def led_by(self, broker: int) -> Set[TopicPartition]:
        """Partitions whose leader it is."""
        return self._led.get(broker, _NOTHING)

    def preferred_count(self, broker: int) -> int:
        """Return how many partitions the broker is the preferred leader of."""
        return self._preferred.get(broker, 0)

    def not_led_as_preferred(self, broker: int) -> Set[TopicPartition]:
        """Return the partitions of which the broker is the preferred leader, but does not lead."""
        return self._not_preferred.get(broker, _NOTHING)

    @property
    def brokers(self) -> list[int]:
        """Every broker that holds a partition, alive or not, in order."""
        return sorted(broker for broker, replicas in self._replicas.items() if replicas)

    @property
    def preferred_brokers(self) -> list[int]:
        """Every broker that does not lead a partition it should lead, in order."""
        return sorted(broker for broker, partitions in self._not_preferred.items() if partitions)

    def add(self, tp: TopicPartition, state: Assigned) -> None:
        """Add a partition with its new state; call `remove` with the old state before."""
        for replica in state.replicas:
            self._replicas[replica].add(tp)
        preferred = state.replicas[0]
        self._preferred[preferred] += 1
        if state.leader != preferred:
            self._not_preferred[preferred].add(tp)
        if state.leader < 0:
            self.leaderless.add(tp)
        else:
            self._led[state.leader].add(tp)
        if state.is_reassigning:
            self.reassigning.add(tp)

    def remove(self, tp: TopicPartition, state: Assigned) -> None:
        """Remove a partition with its old state."""
        for replica in state.replicas:
            self._replicas[replica].discard(tp)
        preferred = state.replicas[0]
        self._preferred[preferred] -= 1
        self._not_preferred[preferred].discard(tp)
        self._led[state.leader].discard(tp)
        self.leaderless.discard(tp)
        self.reassigning.discard(tp)
