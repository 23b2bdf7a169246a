"""Whom to ask instead: the current leader beside errors of Produce and Fetch, and its address (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from kafka_client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.broker.topics.cluster_view import ClusterView, Node
    from logd.broker.topics.topic import Topic
    from logd.config.listeners import Endpoint

Find: TypeAlias = "Callable[[Any], Topic | None]"
"""A topic by what the requests call it: its name or its id."""


class PartitionAnswer(Protocol):
    """A partition's answer, a named tuple: of Produce or of Fetch."""

    @property
    def partition(self) -> int:
        """Its index."""

    @property
    def error_code(self) -> int:
        """0 for none."""

    def _replace(self, *, leader: tuple[int, int]) -> Self:
        """Return a copy with a current leader."""


A = TypeVar("A", bound=PartitionAnswer)


def tell_leaders(
    answers: Sequence[tuple[Any, list[A]]],
    codes: Collection[int],
    find: Find,
    cluster: ClusterView,
    asked_on: Endpoint,
) -> list[Node]:
    """Put the current leader into every answer with one of these error codes; returns the nodes to be named.

    A leader that is not alive, or has no such listener, is told without an address.
    """
    nodes: dict[int, Node] = {}
    for name, partitions in answers:
        topic = find(name)
        if topic is None:
            continue
        for place, answer in enumerate(partitions):
            if answer.error_code not in codes:
                continue
            leader = cluster.leader_of(TopicPartition(topic.name, answer.partition))
            if leader is not None:
                partitions[place] = answer._replace(leader=leader)
                node = cluster.node(leader.id, asked_on)
                if node is not None:
                    nodes[node.id] = node
    return list(nodes.values())
