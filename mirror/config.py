"""Parses `mm2.properties`, MirrorMaker 2's config file, into the settings of links.

    clusters = a, b
    a.bootstrap.servers = localhost:9092
    b.bootstrap.servers = localhost:9093
    a->b.enabled = true
    a->b.topics = flights, airline-.*

A key of a flow is looked up as `a->b.key`, then as `key`. `client_keys` reads the keys of clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError
from kafka_client.http.access import KEYS as ACCESS_KEYS
from kafka_client.http.access import HttpAccess
from kafka_client.http.address import check_address
from mirror.client_keys import SERVERS, ClientKeys, Side
from mirror.discontinuities import ACCEPT_KEY
from mirror.filters import CONFIG_PROPERTIES_EXCLUDE, TOPICS_EXCLUDE, NameFilter, TopicFilter, patterns
from mirror.group_settings import GROUPS_EXCLUDE, GroupSettings, group_filter
from mirror.places import Places, parse_places
from mirror.policy import POLICY_KEYS, ReplicationPolicy, policy_named
from mirror.resolved_properties import ResolvedProperties
from mirror.unreadable import SKIP_KEY, parse_skips
from mirror.unused_keys import warn_unused

HTTP_PREFIX = "http."
"""The prefix of the listener's keys of TLS and users."""
HTTP_LISTENER = "http.listener"
"""The key of the process's HTTP listener, which all flows share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster: its alias, its brokers and how to connect to them."""

    alias: str
    bootstrap_servers: str
    client: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `Client`, such as those for TLS and SASL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """Settings of a flow from `source` to `target`."""

    source: Cluster
    target: Cluster
    policy: ReplicationPolicy
    topics: TopicFilter
    replication_factor: int = 2
    """Replication factor of remote topics; -1 is the target's default."""
    refresh_topics: bool = True
    refresh_topics_interval_seconds: float = 600
    sync_topic_configs: bool = True
    config_exclude: tuple[re.Pattern[str], ...] = patterns("", CONFIG_PROPERTIES_EXCLUDE)
    source_defaults: bool = False
    """True if remote topics get the source's defaults, False if the target's (`use.defaults.from`)."""
    offset_syncs_location: Literal["source", "target"] = "source"
    offset_syncs_replication_factor: int = 3
    emit_offset_syncs: bool = True
    """True to write syncs for the translation of offsets, too, and not only for a restart (KIP-1031)."""
    offset_lag_max: int = 100
    """Downstream offsets that may be copied until the next sync is written, if its second is not over."""
    emit_offset_syncs_interval_seconds: float = 1
    """Seconds between offset syncs of a partition; a restart reads the source from the last sync on."""
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    """Where the copy of a partition without an offset sync starts."""
    emit_heartbeats: bool = True
    emit_heartbeats_interval_seconds: float = 1
    heartbeats_replication_factor: int = 3
    groups: GroupSettings = field(default_factory=GroupSettings)
    skip_unreadable: Places = ()
    """Unreadable batches of the source to skip, each named by its partition and an offset in the batch."""
    accept_discontinuities: Places = ()
    """Partitions to resume although records are missing between the copy and the source; see
    `discontinuities`.
    """

    @property
    def name(self) -> str:
        """The flow's name, `source->target`."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def offset_syncs_topic(self) -> str:
        """The topic's name. It contains the alias of the other cluster, as in MirrorMaker 2."""
        other = self.target.alias if self.offset_syncs_location == "source" else self.source.alias
        return self.policy.offset_syncs_topic(other)

    def remote_topic(self, topic: str) -> str:
        """Return the name in the target of a topic of the source."""
        return self.policy.remote_topic(self.source.alias, topic)

    def copied_topic(self, topic: str) -> str | None:
        """Return the name in the target of a topic of the source, or None if the flow does not copy it."""
        return self.remote_topic(topic) if self.topics.takes(topic) else None

    def remote(self, tp: TopicPartition) -> TopicPartition:
        """Return the partition in the target of a partition of the source."""
        return TopicPartition(self.remote_topic(tp.topic), tp.partition)


def parse_links(properties: Mapping[str, str]) -> list[LinkSettings]:
    """Return the settings of each enabled flow.

    Raises ConfigError if no flow is enabled or a setting is invalid.
    """
    resolved = ResolvedProperties.by_own_providers(properties)
    aliases = _aliases(resolved)
    for key in (f"{alias}.{SERVERS}" for alias in aliases):
        if not resolved.get(key):
            raise ConfigError(key, "", "host:port, separated by commas")
    flows = [_Flow(resolved, a, b) for a in aliases for b in aliases if a != b]
    links = [_link(flow) for flow in flows if flow.is_enabled]
    for link in links:
        _check_syncs(link)
    if not links:
        raise ConfigError(
            "enabled", "", f"set one to true of {', '.join(f.name + '.enabled' for f in flows)}"
        )
    effective = {key for flow in flows for key in flow.keys_read}
    of_http = {HTTP_LISTENER, *(HTTP_PREFIX + key for key in ACCESS_KEYS)}
    warn_unused(properties, aliases, effective | of_http)
    return links


def parse_flow(properties: Mapping[str, str], source: str, target: str) -> LinkSettings:
    """Return the settings of one flow, whose keys have no prefix, as in the config of a Connect connector.

    `source.cluster.bootstrap.servers` and that of the target have to be set. Raises ConfigError if a setting
    is invalid.
    """
    return _link(_Flow(ResolvedProperties.by_own_providers(properties), source, target))


def parse_http_listener(properties: Mapping[str, str]) -> str:
    """Return where to serve metrics and health, as host:port; empty for nowhere. Raises ConfigError."""
    listener = properties.get(HTTP_LISTENER, "")
    if listener:
        check_address(HTTP_LISTENER, listener)
    return listener


def http_access(properties: Mapping[str, str]) -> HttpAccess:
    """Return the TLS and the users of the HTTP listener. Reads their files. Raises ConfigError."""
    return HttpAccess(ResolvedProperties.by_own_providers(properties), HTTP_PREFIX)


def _aliases(properties: Mapping[str, str]) -> list[str]:
    text = properties.get("clusters", "")
    aliases = [part for part in (part.strip() for part in text.split(",")) if part]
    if len(aliases) < 2:
        raise ConfigError("clusters", text, "at least two aliases, separated by commas")
    if len(set(aliases)) < len(aliases):
        raise ConfigError("clusters", text, "each alias once")
    return aliases


def _link(flow: _Flow) -> LinkSettings:
    source, target = flow.cluster("source"), flow.cluster("target")
    policy = policy_named(
        flow.text("replication.policy.class", "DefaultReplicationPolicy"), flow.policy_properties()
    )
    names = NameFilter(
        patterns("topics", flow.text("topics", ".*")),
        patterns("topics.exclude", flow.text("topics.exclude", TOPICS_EXCLUDE)),
    )
    return LinkSettings(
        source=source,
        target=target,
        policy=policy,
        topics=TopicFilter(
            names=names,
            policy=policy,
            source=source.alias,
            target=target.alias,
            heartbeats=flow.boolean("heartbeats.replication.enabled", True),
        ),
        replication_factor=flow.number("replication.factor", 2),
        refresh_topics=flow.boolean("refresh.topics.enabled", True),
        refresh_topics_interval_seconds=flow.number("refresh.topics.interval.seconds", 600),
        sync_topic_configs=flow.boolean("sync.topic.configs.enabled", True),
        config_exclude=patterns(
            "config.properties.exclude", flow.text("config.properties.exclude", CONFIG_PROPERTIES_EXCLUDE)
        ),
        source_defaults=bool(flow.choice("use.defaults.from", "target", "source")),
        offset_syncs_location="target"
        if flow.choice("offset-syncs.topic.location", "source", "target")
        else "source",
        offset_syncs_replication_factor=flow.number("offset-syncs.topic.replication.factor", 3),
        emit_offset_syncs=flow.boolean("emit.offset-syncs.enabled", True),
        offset_lag_max=flow.number("offset.lag.max", 100),
        auto_offset_reset="latest" if flow.starts_at_the_end() else "earliest",
        emit_heartbeats=flow.boolean("emit.heartbeats.enabled", True),
        emit_heartbeats_interval_seconds=flow.number("emit.heartbeats.interval.seconds", 1),
        heartbeats_replication_factor=flow.number("heartbeats.topic.replication.factor", 3),
        groups=_groups(flow),
        skip_unreadable=parse_skips(flow.text(SKIP_KEY, "")),
        accept_discontinuities=parse_places(ACCEPT_KEY, flow.text(ACCEPT_KEY, "")),
    )


def _groups(flow: _Flow) -> GroupSettings:
    return GroupSettings(
        groups=group_filter(flow.text("groups", ".*"), flow.text("groups.exclude", GROUPS_EXCLUDE)),
        refresh=flow.boolean("refresh.groups.enabled", True),
        refresh_interval_seconds=flow.number("refresh.groups.interval.seconds", 600),
        emit_checkpoints=flow.boolean("emit.checkpoints.enabled", True),
        emit_checkpoints_interval_seconds=flow.number("emit.checkpoints.interval.seconds", 60),
        checkpoints_replication_factor=flow.number("checkpoints.topic.replication.factor", 3),
        sync_offsets=flow.boolean("sync.group.offsets.enabled", False),
        sync_offsets_interval_seconds=flow.number("sync.group.offsets.interval.seconds", 60),
    )


def _check_syncs(link: LinkSettings) -> None:
    """Raise ConfigError if offsets of groups are to be translated without offset syncs."""
    if link.groups.enabled and not link.emit_offset_syncs:
        raise ConfigError(
            "emit.offset-syncs.enabled", "false", "true, which checkpoints and the sync of group offsets need"
        )


class _Flow:
    """The settings of one flow, from cluster `source` to cluster `target`.

    A setting is looked up as `a->b.key`, then as `key`.
    """

    def __init__(self, properties: ResolvedProperties, source: str, target: str) -> None:
        self.name = f"{source}->{target}"
        self._aliases: Mapping[Side, str] = {"source": source, "target": target}
        self._properties = properties
        self._prefix = f"{self.name}."
        self.keys_read = {"clusters", "enabled"}
        """Keys that have an effect, without the flow's prefix."""

    @property
    def is_enabled(self) -> bool:
        """Return `a->b.enabled`. Raises ConfigError if it is neither true nor false."""
        key = f"{self._prefix}enabled"
        return _boolean(key, self._properties.get(key, "false"))

    def cluster(self, side: Side) -> Cluster:
        """Return the cluster on one side, with the flow's own client keys. Raises ConfigError."""
        client = self._clients(side).client()
        return Cluster(
            alias=self._aliases[side], bootstrap_servers=client.values[SERVERS], client=client.client()
        )

    def starts_at_the_end(self) -> bool:
        """Return True if `auto.offset.reset` of the source's consumer is latest, False if it is earliest."""
        key = "auto.offset.reset"
        of_consumer = self._clients("source").of_role("consumer")
        if key in of_consumer.values:
            return bool(_choice(of_consumer.written[key], of_consumer.values[key], ("earliest", "latest")))
        return bool(self.choice(key, "earliest", "latest"))

    def text(self, key: str, default: str) -> str:
        self.keys_read.add(key)
        for name in (self._prefix + key, key):
            if name in self._properties:
                return self._properties[name]
        return default

    def policy_properties(self) -> Mapping[str, str]:
        """Return all properties for the policy, this flow's own before those without a prefix."""
        self.keys_read.update(POLICY_KEYS)
        overlaid = self._properties.overlaid(self._prefix)
        return overlaid.with_value("source.cluster.alias", self._aliases["source"])

    def _clients(self, side: Side) -> ClientKeys:
        return ClientKeys(
            properties=self._properties, flow=self._prefix, side=side, alias=self._aliases[side]
        )

    def number(self, key: str, default: int) -> int:
        text = self.text(key, str(default))
        try:
            return int(text)
        except ValueError:
            raise ConfigError(key, text, "a whole number") from None

    def boolean(self, key: str, default: bool) -> bool:
        return _boolean(key, self.text(key, str(default)))

    def choice(self, key: str, first: str, second: str) -> int:
        """Return 0 for the first value, which is the default, and 1 for the second.

        Raises ConfigError for any other value.
        """
        return _choice(key, self.text(key, first), (first, second))


def _choice(key: str, text: str, choices: Sequence[str]) -> int:
    if text.lower() not in choices:
        raise ConfigError(key, text, " or ".join(choices))
    return choices.index(text.lower())


def _boolean(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(key, text, "true or false")
    return text.lower() == "true"
