"""MirrorMaker 2's replication policies: the names of remote topics and of a mirror's own topics.

`ReplicationPolicy` is the base of the two that MirrorMaker has and of a user's own. `policy_named` finds one.
Sources: KIP-382, KIP-690 (separators in the names of internal topics), KIP-716, and MirrorMaker 4.4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module

from kafka_client.errors import ConfigError

CLASS = "replication.policy.class"
SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR_ENABLED = "replication.policy.internal.topic.separator.enabled"
HEARTBEATS_TOPIC_NAME = "heartbeats.topic.name"
SOURCE_ALIAS = "source.cluster.alias"
POLICY_KEYS = (SEPARATOR, INTERNAL_SEPARATOR_ENABLED, HEARTBEATS_TOPIC_NAME)
"""Keys that Kafka's policies read, apart from the source's alias."""

_DOT = "."


class ReplicationPolicy(ABC):
    """A rule for the names of topics in the target. A user's own policy defines the abstract methods.

    The class is made without arguments; `configure` gets the flow's properties.
    """

    def configure(self, properties: Mapping[str, str]) -> None:  # noqa: B027 - a policy may have no settings
        """Take the flow's properties. Raises ConfigError if one is invalid."""

    @abstractmethod
    def remote_topic(self, source: str, topic: str) -> str:
        """Return the name that `topic` of the cluster `source` has in the target."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster a remote topic was copied from, or None for any other topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the name that a remote topic has in its source, or None for any other topic.

        A topic may be copied several times, so the name may be that of a remote topic again.
        """

    def original_topic(self, topic: str) -> str:
        """Return the name of the topic where it was created."""
        *_, (_, original) = [(None, topic), *self._upstream(topic)]
        return original

    def upstream_clusters(self, topic: str) -> list[str]:
        """Return the aliases of the clusters that `topic` was copied through, nearest first."""
        return [source for source, _ in self._upstream(topic) if source is not None]

    def heartbeats_topic(self) -> str:
        """Return the name of the topic of heartbeats."""
        return "heartbeats"

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the topic of offset syncs; `alias` is the other cluster's."""
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return the name of the topic of checkpoints; `alias` is the source's."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return True for the topic of heartbeats and its copies."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return True for a topic of checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mirror_internal_topic(self, topic: str) -> bool:
        """Return True for a topic of MirrorMaker's own, except heartbeats (KIP-1074)."""
        is_named_so = topic.startswith("mm2") and topic.endswith(".internal")
        return is_named_so or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return True for a topic that is never copied: Kafka's, MirrorMaker's, and hidden ones."""
        return topic.startswith(("__", _DOT)) or self.is_mirror_internal_topic(topic)

    def _upstream(self, topic: str) -> Iterator[tuple[str | None, str]]:
        """Yield the source and the name there of `topic`, and of that topic, until one is no remote topic.

        The walk ends at a name it has met, so a policy whose names repeat makes no endless loop.
        """
        met = {topic}
        while (upstream := self.upstream_topic(topic)) is not None:
            source = self.topic_source(topic)
            if upstream in met:
                if source is not None:
                    yield source, topic
                return
            met.add(upstream)
            yield source, upstream
            topic = upstream


class DefaultReplicationPolicy(ReplicationPolicy):
    """The policy that names a remote topic `source.topic`, so that flows in both directions make no cycle.

    Every prefix of a name counts as a cluster, whether or not its alias is configured here.
    """

    def __init__(
        self,
        separator: str = _DOT,
        *,
        internal_separator_enabled: bool = True,
        heartbeats_topic_name: str = "heartbeats",
    ) -> None:
        self._separator = separator
        self._internal_separator = separator if internal_separator_enabled else _DOT
        self._heartbeats_topic_name = heartbeats_topic_name

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take the separators and the name of the topic of heartbeats."""
        separator = properties.get(SEPARATOR, _DOT)
        if not separator:
            raise ConfigError(SEPARATOR, separator, "one character or more")
        enabled = properties.get(INTERNAL_SEPARATOR_ENABLED, "true").strip().lower()
        if enabled not in ("true", "false"):
            raise ConfigError(INTERNAL_SEPARATOR_ENABLED, enabled, "true or false")
        self._separator = separator
        self._internal_separator = separator if enabled == "true" else _DOT
        self._heartbeats_topic_name = properties.get(HEARTBEATS_TOPIC_NAME) or self._heartbeats_topic_name

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the topic's name, prefixed with its cluster's alias."""
        return f"{source}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the name's first prefix. A name of nothing but separators after it has none, as in Java."""
        source, separator, rest = topic.partition(self._separator)
        return source if separator and rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name without its first prefix."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def heartbeats_topic(self) -> str:
        """Return the configured name; a separator has no effect on it."""
        return self._heartbeats_topic_name

    def offset_syncs_topic(self, alias: str) -> str:
        """Return `mm2-offset-syncs.<alias>.internal`, with the separator of internal topics."""
        separator = self._internal_separator
        return f"mm2-offset-syncs{separator}{alias}{separator}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return `<alias>.checkpoints.internal`, with the separator of internal topics."""
        return f"{alias}{self._checkpoints_suffix}"

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return True for a topic of checkpoints."""
        return topic.endswith(self._checkpoints_suffix)

    def is_mirror_internal_topic(self, topic: str) -> bool:
        """Return True for a topic of MirrorMaker's own, except heartbeats (KIP-1074)."""
        is_named_so = topic.startswith("mm2") and topic.endswith(f"{self._internal_separator}internal")
        return is_named_so or self.is_checkpoints_topic(topic)

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_separator}internal"


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """The policy that keeps a topic's name. The operator has to make sure that flows make no cycle.

    Only topics of heartbeats get a prefix, since several flows write there.
    """

    def __init__(self, separator: str = _DOT) -> None:
        super().__init__(separator)
        self._source: str | None = None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take the source's alias too: a name does not tell it."""
        super().configure(properties)
        self._source = properties.get(SOURCE_ALIAS)

    def remote_topic(self, source: str, topic: str) -> str:
        """Return the topic's name unchanged, except for heartbeats."""
        return super().remote_topic(source, topic) if self._is_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the configured source: any topic may be a copy."""
        return super().topic_source(topic) if self._is_heartbeats(topic) else self._source

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name unchanged, except for heartbeats."""
        return super().upstream_topic(topic) if self._is_heartbeats(topic) else topic

    def _is_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())


_POLICIES: dict[str, type[ReplicationPolicy]] = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": IdentityReplicationPolicy,
}
_JAVA_PACKAGE = "org.apache.kafka.connect.mirror"


def policy_named(name: str, properties: Mapping[str, str]) -> ReplicationPolicy:
    """Return the configured policy of this class.

    The class is one of Kafka's, with or without its package, or a user's own as `module.Class`. Raises
    ConfigError if there is no such class, or if `properties` are invalid.
    """
    module, _, class_name = name.strip().rpartition(".")
    policy_class = _POLICIES.get(class_name) if module in ("", _JAVA_PACKAGE) else None
    policy = (policy_class or _own_policy(name, module, class_name))()
    policy.configure(properties)
    return policy


def _own_policy(name: str, module: str, class_name: str) -> type[ReplicationPolicy]:
    expected = f"{', '.join(_POLICIES)}, or module.Class of a subclass of mirror.policy.ReplicationPolicy"
    if not module:
        raise ConfigError(CLASS, name, expected)
    try:
        attribute: object = getattr(import_module(module), class_name, None)
    except ImportError as e:
        raise ConfigError(CLASS, name, f"{expected} ({e})") from None
    if not (isinstance(attribute, type) and issubclass(attribute, ReplicationPolicy)):
        raise ConfigError(CLASS, name, f"{expected} ({module} has no such class)")
    return attribute
