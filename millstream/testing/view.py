"""A cluster as seen by one of its brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

from kafka_client.topic_partition import TopicPartition

NOBODY = -1
"""The broker id that means none."""


class State(NamedTuple):
    """The state of a partition."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_in_sync(self) -> bool:
        """True if the partition has a leader, and all replicas are in sync."""
        return self.leader != NOBODY and set(self.isr) == set(self.replicas)

    def __str__(self) -> str:
        in_sync = ", ".join(map(str, sorted(self.isr)))
        replicas = ", ".join(map(str, sorted(self.replicas)))
        return f"leader {_id(self.leader)}, in sync {in_sync} of {replicas}"


class View(NamedTuple):
    """A broker's view of the cluster. `is_harmed`: True if deleting topics does not reset the broker."""

    alive: frozenset[int]
    controller: int
    topics: frozenset[str]
    states: Mapping[TopicPartition, State]
    is_harmed: bool

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Return the view from the answer of `Served.do_view`."""
        return cls(
            alive=frozenset(answer["alive"]),
            controller=answer["controller"],
            topics=frozenset(answer["topics"]),
            states={
                TopicPartition(topic, partition): State(leader, tuple(replicas), tuple(isr))
                for topic, partition, leader, replicas, isr in answer["states"]
            },
            is_harmed=answer["is_harmed"],
        )

    def leader(self, tp: TopicPartition) -> int:
        """Return the leader's id; `NOBODY` without a leader or partition."""
        state = self.states.get(tp)
        return NOBODY if state is None else state.leader

    def of_topic(self, topic: str) -> Iterator[tuple[TopicPartition, State]]:
        """Return the topic's partitions with their states."""
        return ((tp, state) for tp, state in self.states.items() if tp.topic == topic)

    def is_in_sync(self, topic: str) -> bool:
        """Return True if the topic exists and all its partitions are in sync."""
        states = [state for _, state in self.of_topic(topic)]
        return bool(states) and all(state.is_in_sync for state in states)


def _id(broker: int) -> str:
    return "none" if broker == NOBODY else str(broker)
