"""Settings of MirrorMaker 2's connectors. `flow_of` makes the settings of a flow of a connector's config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from connect.api import Config, setting
from mirror.config import LinkSettings, parse_flow
from mirror.filters import CONFIG_PROPERTIES_EXCLUDE, TOPICS_EXCLUDE
from mirror.group_settings import GROUPS_EXCLUDE

SOURCE_CLUSTER_ALIAS = "source.cluster.alias"
TARGET_CLUSTER_ALIAS = "target.cluster.alias"
_GROUP = "Replication"


class MirrorConfig(Config):
    """Settings that the connectors of MirrorMaker 2 share.

    Keys of clients have the prefixes `source.cluster.`, `target.cluster.`, `source.consumer.`,
    `target.producer.` and so on.
    """

    PREFIXES: ClassVar[tuple[str, ...]] = ("source.", "target.", "consumer.", "producer.", "admin.", "task.")

    enabled: bool = setting("Whether the connector has any tasks.", default=True, group=_GROUP)
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
        default="DefaultReplicationPolicy",
        kind="STRING",
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
        """Raise ConfigError for a setting that a flow cannot use."""
        flow_of(self.raw)


class MirrorSourceConfig(MirrorConfig):
    """Copies topics of another cluster, batch by batch and undecoded, as MirrorMaker 2's source connector.

    Goes on from the source offsets of MirrorMaker's connector of the same name, and the reverse.
    """

    topics: str = setting("Regular expressions of names of topics.", default=".*", group=_GROUP)
    topics_exclude: str = setting(
        "Regular expressions of topics to leave out.", default=TOPICS_EXCLUDE, group=_GROUP
    )
    replication_factor: int = setting(
        "Replication factor of remote topics; -1: the target's default.", default=2, group=_GROUP
    )
    refresh_topics_enabled: bool = setting(
        "Whether to look for new topics and partitions.", default=True, group=_GROUP
    )
    refresh_topics_interval_seconds: int = setting("How often to look.", default=600, group=_GROUP)
    sync_topic_configs_enabled: bool = setting("Whether to copy configs of topics.", default=True)
    config_properties_exclude: str = setting(
        "Regular expressions of configs that are not copied.", default=CONFIG_PROPERTIES_EXCLUDE
    )
    use_defaults_from: str = setting(
        "Whose defaults remote topics have: `target` or `source`.", default="target", importance="LOW"
    )
    offset_lag_max: int = setting("Records without an offset sync at most.", default=100, importance="LOW")
    offset_syncs_topic_location: str = setting(
        "Cluster of the offset-syncs topic: `source` or `target`.",
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
    emit_offset_syncs_enabled: bool = setting(
        "Whether to write offset syncs.", key="emit.offset-syncs.enabled", default=True, importance="LOW"
    )
    heartbeats_replication_enabled: bool = setting(
        "Whether to copy topics of heartbeats.", default=True, importance="LOW"
    )
    consumer_poll_timeout_ms: int = setting("How long a poll may take.", default=1000, importance="LOW")
    skip_unreadable_batches: str = setting(
        "Batches to leave out because they cannot be read: `flights-0@1234`.", default="", importance="LOW"
    )


class MirrorCheckpointConfig(MirrorConfig):
    """Writes checkpoints of consumer groups into the target, as MirrorMaker 2's checkpoint connector."""

    groups: str = setting("Regular expressions of names of groups.", default=".*", group=_GROUP)
    groups_exclude: str = setting(
        "Regular expressions of groups to leave out.", default=GROUPS_EXCLUDE, group=_GROUP
    )
    topics: str = setting("Regular expressions of names of topics.", default=".*", group=_GROUP)
    topics_exclude: str = setting(
        "Regular expressions of topics to leave out.", default=TOPICS_EXCLUDE, group=_GROUP
    )
    refresh_groups_enabled: bool = setting("Whether to look for new groups.", default=True)
    refresh_groups_interval_seconds: int = setting("How often to look.", default=600)
    emit_checkpoints_enabled: bool = setting("Whether to write checkpoints.", default=True)
    emit_checkpoints_interval_seconds: int = setting("How often to write them.", default=60)
    checkpoints_topic_replication_factor: int = setting(
        "Replication factor of the topic of checkpoints.", default=3, importance="LOW"
    )
    sync_group_offsets_enabled: bool = setting(
        "Whether to commit translated offsets in the target, for groups without members there.", default=False
    )
    sync_group_offsets_interval_seconds: int = setting("How often to commit them.", default=60)
    offset_syncs_topic_location: str = setting(
        "Cluster of the offset-syncs topic: `source` or `target`.",
        key="offset-syncs.topic.location",
        default="source",
        importance="LOW",
    )


class MirrorHeartbeatConfig(MirrorConfig):
    """Writes heartbeats into the target, as MirrorMaker 2's heartbeat connector."""

    emit_heartbeats_enabled: bool = setting("Whether to write heartbeats.", default=True)
    emit_heartbeats_interval_seconds: int = setting("How often to write them.", default=1)
    heartbeats_topic_replication_factor: int = setting(
        "Replication factor of the topic of heartbeats.", default=3, importance="LOW"
    )


def flow_of(config: Mapping[str, Any]) -> LinkSettings:
    """Return the settings of the flow of a connector's or a task's config. Raises ConfigError."""
    texts = {key: str(value) for key, value in config.items()}
    return parse_flow(texts, texts[SOURCE_CLUSTER_ALIAS], texts.get(TARGET_CLUSTER_ALIAS, "target"))
