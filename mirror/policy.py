"""What a topic of cluster `source` is called in the target: MirrorMaker 2's replication policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafka_client.errors import ConfigError


class ReplicationPolicy(Protocol):
    """Names, and nothing else."""

    def remote_topic(self, source: str, topic: str) -> str:
        """The name in the target cluster of `topic` of the cluster `source`."""
        ...

    def upstream_clusters(self, topic: str) -> list[str]:
        """Aliases `topic` has come through, nearest first; none for a topic of this cluster's own."""
        ...


class DefaultReplicationPolicy:
    """`source.topic`: the origin shows in the name, so that copying both ways cannot go in circles."""

    def __init__(self, separator: str = ".", aliases: frozenset[str] = frozenset()) -> None:
        self._separator = separator
        self._aliases = aliases

    def remote_topic(self, source: str, topic: str) -> str:
        """The topic with its cluster in front."""
        return f"{source}{self._separator}{topic}"

    def upstream_clusters(self, topic: str) -> list[str]:
        """The prefixes that are names of known clusters."""
        found = []
        alias, separator, rest = topic.partition(self._separator)
        while separator and alias in self._aliases:
            found.append(alias)
            alias, separator, rest = rest.partition(self._separator)
        return found


class IdentityReplicationPolicy:
    """The same name on both sides. Nothing but the operator keeps two links from copying in circles."""

    def remote_topic(self, source: str, topic: str) -> str:
        """The name as it is."""
        return topic

    def upstream_clusters(self, topic: str) -> list[str]:
        """Not to be seen from the name."""
        return []


_POLICIES: dict[str, Callable[[str, frozenset[str]], ReplicationPolicy]] = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": lambda separator, aliases: IdentityReplicationPolicy(),
}


def policy_named(name: str, separator: str, aliases: frozenset[str]) -> ReplicationPolicy:
    """The policy of Kafka's class name, with or without its package."""
    make = _POLICIES.get(name.rpartition(".")[2])
    if make is None:
        raise ConfigError("replication.policy.class", name, " or ".join(_POLICIES))
    return make(separator, aliases)
