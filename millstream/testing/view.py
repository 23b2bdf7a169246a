"""A cluster as one of its brokers has been told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

from kafka_client.topic_partition import TopicPartition

NOBODY = -1
"""In place of a broker's id."""


class State(NamedTuple):
    """Of a partition."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_in_sync(self) -> bool:
        """Whether it has a leader, and all replicas are in sync."""
        return self.leader != NOBODY and set(self.isr) == set(self.replicas)

    def __str__(self) -> str:
        in_sync = ", ".join(map(str, sorted(self.isr)))
        held = ", ".join(map(str, sorted(self.replicas)))
        return f"leader {_id(self.leader)}, in sync {in_sync} of {held}"


class View(NamedTuple):
    """`is_harmed`: more than topics would have to be deleted to have everything as new."""

    alive: frozenset[int]
    controller: int
    topics: frozenset[str]
    states: Mapping[TopicPartition, State]
    is_harmed: bool

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """From what `Served.do_view` answers."""
        return cls(
            alive=frozenset(told["alive"]),
            controller=told["controller"],
            topics=frozenset(told["topics"]),
            states={
                TopicPartition(topic, partition): State(leader, tuple(replicas), tuple(isr))
                for topic, partition, leader, replicas, isr in told["states"]
            },
            is_harmed=told["is_harmed"],
        )

    def leader(self, tp: TopicPartition) -> int:
        """Who leads it; `NOBODY` also where there is no such partition."""
        state = self.states.get(tp)
        return NOBODY if state is None else state.leader

    def of_topic(self, topic: str) -> Iterator[tuple[TopicPartition, State]]:
        """Its partitions."""
        return ((tp, state) for tp, state in self.states.items() if tp.topic == topic)

    def is_in_sync(self, topic: str) -> bool:
        """Whether there is such a topic, and all its partitions are."""
        states = [state for _, state in self.of_topic(topic)]
        return bool(states) and all(state.is_in_sync for state in states)


def _id(broker: int) -> str:
    return "none" if broker == NOBODY else str(broker)
