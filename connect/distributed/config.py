"""DistributedConfig: the settings of a distributed worker, by Kafka's keys."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from connect.config import setting
from connect.config.checks import at_least, one_of
from connect.group.messages import PROTOCOLS
from connect.runtime.worker_config import WorkerConfig
from connect.stores import InternalTopic
from kafka_client.errors import ConfigError

_MODES = {"eager": "default", "compatible": "compatible", "sessioned": "sessioned"}
"""The values of `connect.protocol`, each with the preferred one of its protocols."""


def _named(value: str) -> None:
    if not value.strip():
        raise ValueError("must not be empty")


def _count_or_default(value: int) -> None:
    if value != -1 and value < 1:
        raise ValueError("must be at least 1, or -1 for the broker's default")


def _mode(value: str) -> None:
    if value.lower() not in _MODES:
        raise ValueError(f"must be one of {', '.join(_MODES)}")


class DistributedConfig(WorkerConfig):
    """Settings of a distributed Connect worker."""

    group_id: str = setting(
        "Name of the group of workers; all workers with this name share the connectors.",
        importance="HIGH",
        check=_named,
    )
    config_storage_topic: str = setting(
        "Topic of connectors, task configs and target states.", importance="HIGH", check=_named
    )
    config_storage_replication_factor: int = setting(
        "Replicas of a new config topic.", default=3, importance="LOW", check=_count_or_default
    )
    offset_storage_topic: str = setting("Topic of source offsets.", importance="HIGH", check=_named)
    offset_storage_partitions: int = setting(
        "Partitions of a new offset topic.", default=25, importance="LOW", check=_count_or_default
    )
    offset_storage_replication_factor: int = setting(
        "Replicas of a new offset topic.", default=3, importance="LOW", check=_count_or_default
    )
    status_storage_topic: str = setting("Topic of statuses.", importance="HIGH", check=_named)
    status_storage_partitions: int = setting(
        "Partitions of a new status topic.", default=5, importance="LOW", check=_count_or_default
    )
    status_storage_replication_factor: int = setting(
        "Replicas of a new status topic.", default=3, importance="LOW", check=_count_or_default
    )
    internal_topics_automatic_creation_enable: bool = setting(
        "Whether the worker creates its missing topics.", default=True, importance="LOW"
    )
    exactly_once_source_support: str = setting(
        "Whether sources write records and offsets in transactions (KIP-618): disabled, preparing, enabled. "
        "A running group goes through preparing on every worker.",
        default="disabled",
        importance="HIGH",
        check=one_of("disabled", "preparing", "enabled"),
    )
    session_timeout_ms: int = setting(
        "Time without a heartbeat after which a worker is no longer in the group.",
        default=10_000,
        importance="HIGH",
        check=at_least(1),
    )
    heartbeat_interval_ms: int = setting(
        "Time between two heartbeats.", default=3_000, importance="HIGH", check=at_least(1)
    )
    rebalance_timeout_ms: int = setting(
        "How long a rebalance waits for a worker to stop tasks.",
        default=60_000,
        importance="HIGH",
        check=at_least(1),
    )
    scheduled_rebalance_max_delay_ms: int = setting(
        "How long the connectors and tasks of a worker that left wait for its return.",
        default=300_000,
        importance="LOW",
        check=at_least(0),
    )
    connect_protocol: str = setting(
        "Protocol of the group: sessioned, compatible or eager.",
        default="sessioned",
        importance="LOW",
        check=_mode,
    )
    placement: Literal["count", "load"] = setting(
        "How the leader places tasks: by their number, as in Kafka, or by their measured load, within "
        "connectors' `placement.pin` and `placement.spread`.",
        default="count",
        importance="LOW",
    )
    placement_labels: list[str] = setting(
        "Labels of this worker, such as `zone=a`, for `placement.pin`.", default=[], importance="LOW"
    )
    placement_interval_ms: int = setting(
        "How often the leader looks at the loads, with `placement=load`.",
        default=300_000,
        importance="LOW",
        check=at_least(1000),
    )
    worker_sync_timeout_ms: int = setting(
        "How long a worker that lacks configs may take to read them before it leaves the group.",
        default=3_000,
        check=at_least(1),
    )
    worker_unsync_backoff_ms: int = setting(
        "How long such a worker stays out of the group.", default=300_000, check=at_least(0)
    )
    inter_worker_key_ttl_ms: int = setting(
        "Life time of the key that signs requests between workers.",
        default=3_600_000,
        importance="LOW",
        check=at_least(1),
    )
    inter_worker_signature_algorithm: str = setting(
        "Algorithm of such signatures.", default="HmacSHA256", importance="LOW"
    )
    inter_worker_key_generation_algorithm: str = setting(
        "Algorithm that the keys are for.", default="HmacSHA256", importance="LOW"
    )
    inter_worker_key_size: int | None = setting(
        "Bytes of a key; unless set, as many as the algorithm's digests have.",
        default=None,
        importance="LOW",
    )
    inter_worker_verification_algorithms: list[str] = setting(
        "Algorithms of signatures that are accepted.", default=["HmacSHA256"], importance="LOW"
    )

    PREFIXES: ClassVar[tuple[str, ...]] = (
        *WorkerConfig.PREFIXES,
        "config.storage.",
        "offset.storage.",
        "status.storage.",
    )

    def check(self) -> None:
        """Raise ConfigError for settings that do not go together."""
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                "heartbeat.interval.ms",
                self.heartbeat_interval_ms,
                f"must be less than session.timeout.ms, {self.session_timeout_ms}",
            )
        topics = [self.config_storage_topic, self.offset_storage_topic, self.status_storage_topic]
        if len(set(topics)) != len(topics):
            raise ConfigError(
                "config.storage.topic", topics[0], "and offset and status topics must be three topics"
            )
        if self.inter_worker_signature_algorithm not in self.inter_worker_verification_algorithms:
            raise ConfigError(
                "inter.worker.signature.algorithm",
                self.inter_worker_signature_algorithm,
                "must be among inter.worker.verification.algorithms",
            )

    @property
    def protocols(self) -> list[str]:
        """The group protocols that this worker knows; the preferred one first."""
        names = list(PROTOCOLS)
        return names[names.index(_MODES[self.connect_protocol.lower()]) :]

    @property
    def exactly_once_source_enabled(self) -> bool:
        """True if sources write records and offsets in transactions."""
        return self.exactly_once_source_support.strip().lower() == "enabled"

    @property
    def worker_group(self) -> str:
        """The name of the group of workers."""
        return self.group_id

    @property
    def leader_transactional_id(self) -> str | None:
        """The id by which the leader writes to the config topic; None without transactions (KIP-618)."""
        disabled = self.exactly_once_source_support.strip().lower() == "disabled"
        return None if disabled else f"connect-cluster-{self.group_id}"

    def config_topic(self) -> InternalTopic:
        """Return the description of the config topic."""
        return self._topic("config", "connector configurations", 1)

    def offset_topic(self) -> InternalTopic:
        """Return the description of the offset topic."""
        return self._topic("offset", "source connector offsets", self.offset_storage_partitions)

    def status_topic(self) -> InternalTopic:
        """Return the description of the status topic."""
        return self._topic("status", "connector statuses", self.status_storage_partitions)

    def _topic(self, kind: str, purpose: str, partitions: int) -> InternalTopic:
        prefix = f"{kind}.storage."
        own = ("topic", "partitions", "replication.factor", "file.filename")
        extra: dict[str, Any] = {
            key.removeprefix(prefix): str(value) for key, value in self.raw.items() if key.startswith(prefix)
        }
        return InternalTopic(
            name=getattr(self, f"{kind}_storage_topic"),
            setting=f"{kind}.storage.topic",
            purpose=purpose,
            partitions=partitions,
            replication_factor=getattr(self, f"{kind}_storage_replication_factor"),
            configs={key: value for key, value in extra.items() if key not in own},
            create=self.internal_topics_automatic_creation_enable,
        )
