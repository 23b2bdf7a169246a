"""Settings of MirrorMaker 2's connectors. `flow_of` makes the settings of a flow of a connector's config."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from connect.api import Config, ConfigError, setting
from connect.errors import InvalidConfig
from mirror.client_keys import is_shared_key
from mirror.config import LinkSettings, parse_flow
from mirror.filters import CONFIG_PROPERTIES_EXCLUDE, TOPICS_EXCLUDE
from mirror.group_settings import GROUPS_EXCLUDE

log = logging.getLogger(__name__)

SOURCE_CLUSTER_ALIAS = "source.cluster.alias"
TARGET_CLUSTER_ALIAS = "target.cluster.alias"
EMIT_SYNCS = "emit.offset-syncs.enabled"
_OFFSET_SYNCS = "offset-syncs.topic."
_GROUP = "Replication"
_ANY = [".*"]
WITHOUT_EFFECT = (
    *("admin.timeout.ms", "forwarding.admin.class", "metric.names.formats", "metric.reporters"),
    *("config.property.filter.class", "topic.filter.class", "group.filter.class"),
    *("sync.topic.acls.enabled", "sync.topic.acls.interval.seconds", "sync.topic.configs.interval.seconds"),
    *("security.", "sasl.", "ssl."),
)
"""Keys of Kafka's connectors without effect here, and prefixes (`ssl.`) of some."""


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


class MirrorConfig(Config):
    """Settings that the connectors of MirrorMaker 2 share.

    Keys of clients have the prefixes `source.cluster.`, `target.cluster.`, `source.consumer.`,
    `target.producer.` and so on.
    """

    PREFIXES: ClassVar[tuple[str, ...]] = (
        *("source.", "target.", "consumer.", "producer.", "admin.", "task."),
        *WITHOUT_EFFECT,
    )

    enabled: bool = setting(
        "Whether the connector has any tasks.", default=True, group=_GROUP, importance="LOW"
    )
    source_cluster_alias: str = setting("Alias of the source.", importance="HIGH", group=_GROUP)
    target_cluster_alias: str = setting(
        "Alias of the target.", default="target", importance="HIGH", group=_GROUP
    )
    source_cluster_bootstrap_servers: str = setting(
        "Brokers of the source, host:port separated by commas.", importance="HIGH", group=_GROUP
    )
    target_cluster_bootstrap_servers: str = setting(
        "Brokers of the target, which has to be the worker's cluster.", importance="HIGH", group=_GROUP
    )
    replication_policy_class: str = setting(
        "DefaultReplicationPolicy, IdentityReplicationPolicy, or `module.Class`.",
        default="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        kind="CLASS",
        importance="LOW",
        group=_GROUP,
    )
    replication_policy_separator: str = setting(
        "Separator in names of remote topics.", default=".", importance="LOW", group=_GROUP
    )
    replication_policy_internal_topic_separator_enabled: bool = setting(
        "Whether names of internal topics have the separator, too.", default=True, importance="LOW"
    )
    heartbeats_topic_name: str = setting(
        "Name of the topic of heartbeats.", default="heartbeats", importance="LOW", group=_GROUP
    )

    def check(self) -> None:
        """Raise ConfigError for settings that a flow cannot use or that contradict each other."""
        errors = self._contradictions()
        try:
            flow_of(self.raw, type(self))
        except ConfigError as e:
            errors.append(e)
        if errors:
            raise InvalidConfig(errors)

    def _contradictions(self) -> list[ConfigError]:
        return []

    def warn_without_effect(self, connector: str) -> None:
        """Log the keys of Kafka's connectors that have no effect here."""
        if unused := sorted(key for key in self.raw if key.startswith(WITHOUT_EFFECT)):
            log.warning("%s: without effect here: %s", connector, ", ".join(unused))


class TopicsConfig(MirrorConfig):
    """Settings of the connectors that need the topics of the flow and its offset syncs.

    The one that starts first creates the offset-syncs topic.
    """

    topics: list[str] = setting(
        "Regular expressions of names of topics.", default=_ANY, group=_GROUP, importance="HIGH"
    )
    topics_exclude: list[str] = setting(
        "Regular expressions of topics to leave out.",
        default=_parts(TOPICS_EXCLUDE),
        group=_GROUP,
        importance="HIGH",
    )
    offset_syncs_topic_location: Literal["source", "target"] = setting(
        "Cluster of the offset-syncs topic.",
        key="offset-syncs.topic.location",
        default="source",
        importance="LOW",
    )
    offset_syncs_topic_replication_factor: int = setting(
        "Replication factor of the offset-syncs topic.",
        key="offset-syncs.topic.replication.factor",
        default=3,
        importance="LOW",
    )


class MirrorSourceConfig(TopicsConfig):
    """Copies topics of another cluster, batch by batch and undecoded, as MirrorMaker 2's source connector.

    Goes on from the source offsets of MirrorMaker's connector of the same name, and the reverse.
    """

    replication_factor: int = setting(
        "Replication factor of remote topics; -1: the target's default.",
        default=2,
        group=_GROUP,
        importance="LOW",
    )
    refresh_topics_enabled: bool = setting(
        "Whether to look for new topics and partitions.", default=True, group=_GROUP, importance="LOW"
    )
    refresh_topics_interval_seconds: int = setting(
        "How often to look.", kind="LONG", default=600, group=_GROUP, importance="LOW"
    )
    sync_topic_configs_enabled: bool = setting(
        "Whether to copy configs of topics.", default=True, importance="LOW"
    )
    config_properties_exclude: list[str] = setting(
        "Regular expressions of configs that are not copied.",
        default=_parts(CONFIG_PROPERTIES_EXCLUDE),
        importance="HIGH",
    )
    use_defaults_from: str = setting(
        "Whose defaults remote topics have: `target` or `source`.", default="target", importance="LOW"
    )
    offset_lag_max: int = setting(
        "Records without an offset sync at most.", kind="LONG", default=100, importance="LOW"
    )
    emit_offset_syncs_enabled: bool = setting(
        "Whether to write offset syncs.", key=EMIT_SYNCS, default=True, importance="LOW"
    )
    heartbeats_replication_enabled: bool = setting(
        "Whether to copy topics of heartbeats.", default=True, importance="LOW"
    )
    consumer_poll_timeout_ms: int = setting(
        "How long a poll may take.", kind="LONG", default=1000, importance="LOW"
    )
    skip_unreadable_batches: str = setting(
        "Batches to leave out because they cannot be read: `flights-0@1234`.", default="", importance="LOW"
    )

    def _contradictions(self) -> list[ConfigError]:
        """Return an error for offset syncs that are set up and not written (KIP-1031)."""
        if self.emit_offset_syncs_enabled or not any(key.startswith(_OFFSET_SYNCS) for key in self.raw):
            return []
        return [ConfigError(EMIT_SYNCS, "false", f"true if there are {_OFFSET_SYNCS} settings")]


class MirrorCheckpointConfig(TopicsConfig):
    """Writes checkpoints of consumer groups into the target, as MirrorMaker 2's checkpoint connector."""

    groups: list[str] = setting(
        "Regular expressions of names of groups.", default=_ANY, group=_GROUP, importance="HIGH"
    )
    groups_exclude: list[str] = setting(
        "Regular expressions of groups to leave out.",
        default=_parts(GROUPS_EXCLUDE),
        group=_GROUP,
        importance="HIGH",
    )
    refresh_groups_enabled: bool = setting("Whether to look for new groups.", default=True, importance="LOW")
    refresh_groups_interval_seconds: int = setting(
        "How often to look.", kind="LONG", default=600, importance="LOW"
    )
    emit_checkpoints_enabled: bool = setting("Whether to write checkpoints.", default=True, importance="LOW")
    emit_checkpoints_interval_seconds: int = setting(
        "How often to write them.", kind="LONG", default=60, importance="LOW"
    )
    checkpoints_topic_replication_factor: int = setting(
        "Replication factor of the topic of checkpoints.", default=3, importance="LOW"
    )
    sync_group_offsets_enabled: bool = setting(
        "Whether to commit translated offsets in the target, for groups without members there.",
        default=False,
        importance="LOW",
    )
    sync_group_offsets_interval_seconds: int = setting(
        "How often to commit them.", kind="LONG", default=60, importance="LOW"
    )

    def _contradictions(self) -> list[ConfigError]:
        """Return an error for each setting without which there is nothing to do (KIP-1031)."""
        if not self.enabled:
            return []
        return [
            ConfigError(key, self.raw[key], "true, or no connector of checkpoints")
            for key in ("emit.checkpoints.enabled", EMIT_SYNCS)
            if str(self.raw.get(key, "true")).strip().lower() == "false"
        ]


class MirrorHeartbeatConfig(MirrorConfig):
    """Writes heartbeats into the target, as MirrorMaker 2's heartbeat connector."""

    emit_heartbeats_enabled: bool = setting("Whether to write heartbeats.", default=True, importance="LOW")
    emit_heartbeats_interval_seconds: int = setting(
        "How often to write them.", kind="LONG", default=1, importance="LOW"
    )
    heartbeats_topic_replication_factor: int = setting(
        "Replication factor of the topic of heartbeats.", default=3, importance="LOW"
    )


def flow_of(config: Mapping[str, Any], connector: type[MirrorConfig]) -> LinkSettings:
    """Return the settings of the flow of a connector's or a task's config. Raises ConfigError.

    Settings of the other connectors have no effect, nor have keys of TLS and SASL without a prefix, as in
    Kafka's connectors.
    """
    others = {key for each in _CONNECTORS for key in each.settings()} - connector.settings().keys()
    texts = {key: str(value) for key, value in config.items() if key not in others and not is_shared_key(key)}
    return parse_flow(texts, texts[SOURCE_CLUSTER_ALIAS], texts.get(TARGET_CLUSTER_ALIAS, "target"))


_CONNECTORS: tuple[type[MirrorConfig], ...] = (
    MirrorSourceConfig,
    MirrorCheckpointConfig,
    MirrorHeartbeatConfig,
)
