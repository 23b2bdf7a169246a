"""Indexes of the cluster's image: the partitions that each broker holds, leads and is preferred to lead.

The indexes follow each applied change of a partition. So the cost of handling a broker that joins or leaves
depends on the partitions of that broker. The indexes do not know which brokers are alive.
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
        """The brokers that hold the partition; the first is preferred as leader."""

    @property
    def leader(self) -> int:
        """The broker that leads the partition; -1 for none."""

    @property
    def is_reassigning(self) -> bool:
        """True if replicas are being added or removed."""


class BrokerIndex:
    """The index of partitions by broker; ``leaderless`` and ``reassigning`` cover the whole cluster.

    Methods return the index's own sets: do not change them, and do not keep them beyond the next change.
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
        """Return the partitions of which the broker is a replica."""
        return self._replicas.get(broker, _NOTHING)

    def led_by(self, broker: int) -> Set[TopicPartition]:
        """Return the partitions whose leader is the broker."""
        return self._led.get(broker, _NOTHING)

    def preferred_count(self, broker: int) -> int:
        """Return how many partitions the broker is the preferred leader of."""
        return self._preferred.get(broker, 0)

    def not_led_as_preferred(self, broker: int) -> Set[TopicPartition]:
        """Return the partitions of which the broker is the preferred leader, but does not lead."""
        return self._not_preferred.get(broker, _NOTHING)

    @property
    def brokers(self) -> list[int]:
        """The brokers that hold a partition, alive or not, in order of their ids."""
        return sorted(broker for broker, replicas in self._replicas.items() if replicas)

    @property
    def preferred_brokers(self) -> list[int]:
        """The brokers that do not lead all partitions of which they are the preferred leader, in order."""
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
