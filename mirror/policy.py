"""MirrorMaker 2's replication policies: how a topic's remote topic in the target is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafka_client.errors import ConfigError


class ReplicationPolicy(Protocol):
    """A rule for the names of remote topics."""

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the name that `topic` of the cluster `source` has in the target."""
        ...

    def upstream_clusters(self, topic: str) -> list[str]:
        """Return the aliases of the clusters `topic` was copied through, nearest first.

        The list is empty for a topic that was created in this cluster.
        """
        ...


class DefaultReplicationPolicy:
    """The policy that names a remote topic `source.topic`, so that flows in both directions make no cycle."""

    def __init__(self, separator: str = ".", aliases: frozenset[str] = frozenset()) -> None:
        self._separator = separator
        self._aliases = aliases

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the topic's name, prefixed with its cluster's alias."""
        return f"{source}{self._separator}{topic}"

    def upstream_clusters(self, topic: str) -> list[str]:
        """Return the prefixes of the name that are aliases of configured clusters."""
        clusters = []
        alias, separator, rest = topic.partition(self._separator)
        while separator and alias in self._aliases:
            clusters.append(alias)
            alias, separator, rest = rest.partition(self._separator)
        return clusters


class IdentityReplicationPolicy:
    """The policy that keeps a topic's name. The operator has to make sure that flows make no cycle."""

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the topic's name unchanged."""
        return topic

    def upstream_clusters(self, topic: str) -> list[str]:
        """Return an empty list: the name does not show the origin."""
        return []


_POLICIES: dict[str, Callable[[str, frozenset[str]], ReplicationPolicy]] = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": lambda separator, aliases: IdentityReplicationPolicy(),
}


def policy_named(name: str, separator: str, aliases: frozenset[str]) -> ReplicationPolicy:
    """Return the policy with this class name in Kafka, with or without its package.

    Raises ConfigError if there is none.
    """
    make = _POLICIES.get(name.rpartition(".")[2])
    if make is None:
        raise ConfigError("replication.policy.class", name, " or ".join(_POLICIES))
    return make(separator, aliases)
