"""The settings of the broker, under Kafka's keys.

Defaults of topics (``log.segment.bytes`` and its like) are not repeated here: they follow from the
broker-level names ``TopicConfig`` declares, and their values are gathered in ``topic_defaults``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from kafka_client.errors import ConfigError
from kafka_client.http.address import is_address
from logd.config.connection_limits import ADDRESS_LIMITS
from logd.config.replication import ReplicationConfig
from logd.config.setting import (
    INT_MAX,
    LONG_MAX,
    Allowed,
    Kind,
    Setting,
    at_least,
    between,
    one_of,
    setting,
    settings_of,
)
from logd.config.settings import field
from logd.config.topic import TOPIC_SETTINGS, TopicConfig

B, S, I, L, T, LI = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG, Kind.SHORT, Kind.LIST  # noqa: E741
D = Kind.DOUBLE

DEDUPE_BUFFER_MIN = 1024 * 1024
"""Memory that one cleaner needs for keys, in bytes."""

_POSITIVE = at_least(1)
ZOOKEEPER_CONNECT = "zookeeper.connect"
"""See `logd.config.zookeeper`."""
_NOT_NEGATIVE = at_least(0)
_RETENTION = Allowed(check=lambda value: value == -1 or value >= 1, text="1 or more, or -1")
"""For all topics: 0 would keep nothing."""


AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's names of authorizers, by ZooKeeper and by KRaft, which decide the same."""


def _principals(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(";") if name.strip())


def _are_principals(text: str) -> bool:
    return all(":" in name for name in _principals(text))


class BrokerConfig(ReplicationConfig):
    """Effective settings of one broker; ``BrokerConfig.of`` builds and checks it from Kafka's keys."""

    # Identity and addresses
    node_id: int = setting(I, 1, "The id of this broker.", allowed=_NOT_NEGATIVE)
    broker_rack: str | None = setting(S, None, "The rack of this broker.", nullable=True)
    listeners: tuple[str, ...] = setting(
        LI,
        ("PLAINTEXT://:9092",),
        "Where to accept connections: NAME://host:port. An empty host is every address.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        LI, None, "The addresses that clients connect to, if they differ from the listeners.", nullable=True
    )
    listener_security_protocol_map: tuple[str, ...] = setting(
        LI,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "The security protocol of each listener name, as NAME:PROTOCOL.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        LI, (), "Listeners meant for a controller quorum; this broker does not open them."
    )
    log_dirs: tuple[str, ...] = setting(
        LI,
        ("/tmp/millstream-logs",),
        "The directories that hold the logs.",
        allowed=Allowed(check=bool, text="at least one folder"),
    )
    millstream_adopt_log_dirs: bool = setting(
        B,
        False,
        "Start although log.dirs hold topics whose metadata.journal is lost. All topics in them are "
        "registered, with default settings. Set it once, on the command line.",
    )
    millstream_remote_shutdown_enable: bool = setting(
        B,
        False,
        "Stop on the request of `millstream broker shutdown`. Identities are not checked: any client that "
        "reaches a listener can stop the broker.",
    )

    millstream_http_listener: str | None = setting(
        S,
        None,
        "Serve /metrics, /livez and /readyz at this host:port, for Prometheus and a supervisor. Port 0 is "
        "any free port. `millstream.http.ssl.*` and `millstream.http.basic.auth.users.file` secure it.",
        nullable=True,
        allowed=Allowed(
            check=lambda value: value is None or is_address(value), text="host:port, such as 127.0.0.1:9464"
        ),
    )
    # Authorization
    authorizer_class_name: str = setting(
        S,
        "",
        "Authorize requests by ACLs. Kafka's names of its two authorizers switch on the same one. Empty: "
        "every client may do everything.",
        allowed=Allowed(
            check=lambda name: name in ("", *AUTHORIZERS), text="empty, or one of " + ", ".join(AUTHORIZERS)
        ),
    )
    super_users: str = setting(
        S,
        "",
        "Principals that may do everything, as User:alice;User:bob.",
        allowed=Allowed(check=_are_principals, text="principals as Type:name, separated by ;"),
    )
    allow_everyone_if_no_acl_found: bool = setting(
        B, False, "Allow everything with a resource that no ACL is about."
    )

    # Topics
    num_partitions: int = setting(I, 1, "Partitions of a topic created without a number.", allowed=_POSITIVE)
    default_replication_factor: int = setting(
        I,
        1,
        "Replicas of a topic created without a number. More than 1 is for clusters only.",
        allowed=_POSITIVE,
    )
    auto_create_topics_enable: bool = setting(B, True, "Create a topic when a client asks for its metadata.")
    max_request_partition_size_limit: int = setting(
        I, 2_000, "Most partitions in one response to DescribeTopicPartitions.", allowed=_POSITIVE
    )
    delete_topic_enable: bool = setting(B, True, "Allow topics to be deleted.")

    # Connections
    socket_request_max_bytes: int = setting(I, 104_857_600, "Largest request accepted.", allowed=_POSITIVE)
    queued_max_request_bytes: int = setting(
        L,
        -1,
        "Most bytes of requests larger than 64 KiB that are being received at one time. Further ones are "
        "read when there is room. -1: no bound. At least socket.request.max.bytes.",
    )
    # With Apache Kafka's 102,400 the system's buffer cannot grow to the size of a response: a fetch of 1 MB
    # then takes five sends, with waits between them, instead of one.
    socket_send_buffer_bytes: int = setting(
        I,
        -1,
        "SO_SNDBUF of client connections. -1: the system's own size, which grows with a client's reads.",
        allowed=at_least(-1),
    )
    socket_receive_buffer_bytes: int = setting(
        I, 102_400, "SO_RCVBUF of client connections. -1: the system's own size.", allowed=at_least(-1)
    )
    socket_listen_backlog_size: int = setting(
        I, 50, "Connections that the kernel may queue before they are accepted.", allowed=_POSITIVE
    )
    connections_max_idle_ms: int = setting(
        L, 600_000, "A connection is closed after this time without traffic."
    )
    connections_max_reauth_ms: int = setting(
        L,
        0,
        "SASL: how long a session lasts before the client has to log in again. 0: as long as the connection.",
        allowed=_NOT_NEGATIVE,
    )
    connection_failed_authentication_delay_ms: int = setting(
        I, 100, "SASL: how long the response to a failed login is delayed.", allowed=_NOT_NEGATIVE
    )
    max_connections: int = setting(
        I,
        INT_MAX,
        "Most connections at one time, of all listeners together. If there are several, the listener "
        "between brokers is spared: connections of clients make room for it.",
        # With Apache Kafka's 0 nobody could take the limit back.
        allowed=_POSITIVE,
        dynamic=True,
    )
    max_connections_per_ip: int = setting(
        I,
        INT_MAX,
        "Most connections at one time from one address, of all listeners together. If there are several, "
        "the listener between brokers is spared.",
        allowed=_POSITIVE,
        dynamic=True,
    )
    max_connections_per_ip_overrides: tuple[str, ...] = setting(
        LI,
        (),
        "Limits of single addresses, in place of max.connections.per.ip. 0 keeps an address out.",
        allowed=ADDRESS_LIMITS,
        dynamic=True,
    )
    max_connection_creation_rate: int = setting(
        I,
        INT_MAX,
        "Most new connections per second; further ones wait. If there are several listeners, the one "
        "between brokers is spared.",
        allowed=_POSITIVE,
        dynamic=True,
    )
    fetch_max_bytes: int = setting(
        I, 57_671_680, "Most bytes of records in one fetch response.", allowed=at_least(1024)
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        I,
        1_000,
        "Most fetch sessions. Clients without a session name all partitions in each fetch.",
        allowed=_NOT_NEGATIVE,
    )
    millstream_fetch_send: str = setting(
        S,
        "sendfile",
        "How fetched bytes reach the socket: sendfile from the page cache, or copy (read and send).",
        allowed=one_of("sendfile", "copy"),
    )
    background_threads: int = setting(
        I,
        10,
        "Threads for blocking work: fsync, deletes, reads from the disk.",
        allowed=_POSITIVE,
        dynamic=True,
    )

    # Log housekeeping
    log_retention_check_interval_ms: int = setting(
        L, 300_000, "How often segments are checked against retention.", allowed=_POSITIVE
    )
    log_retention_minutes: int | None = setting(
        I, None, "Retention in minutes.", nullable=True, allowed=_RETENTION
    )
    log_retention_hours: int = setting(I, 168, "Retention in hours.", allowed=_RETENTION)
    log_roll_hours: int = setting(I, 168, "Longest life of an open segment, in hours.", allowed=_POSITIVE)
    log_roll_jitter_hours: int = setting(I, 0, "Jitter of log.roll.hours.", allowed=_NOT_NEGATIVE)
    log_flush_scheduler_interval_ms: int = setting(
        L, LONG_MAX, "How often logs are checked for a due flush.", allowed=_POSITIVE
    )
    millstream_flush_interval_ms: int = setting(
        L,
        5_000,
        "How often logs are synced to the disk, in the background. A start after a crash only reads "
        "records written since.",
        allowed=_POSITIVE,
    )
    millstream_flush_interval_bytes: int = setting(
        L,
        256 * 1024 * 1024,
        "Logs are synced in the background before millstream.flush.interval.ms is over if this many bytes "
        "are not on the disk yet.",
        allowed=_POSITIVE,
    )
    millstream_open_files_max: int | None = setting(
        I,
        None,
        "Most segments whose file is open. Above it, the least recently used file is closed. Default: half "
        "of the files that the process may open (ulimit -n).",
        nullable=True,
        allowed=_POSITIVE,
    )
    millstream_open_files_idle_ms: int = setting(
        L, 60_000, "A segment's file is closed after this time without use.", allowed=_POSITIVE
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        I,
        60_000,
        "How often recovery points are written. They are also written after each background flush.",
        allowed=_NOT_NEGATIVE,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        I,
        60_000,
        "How often log start offsets are written, and recovery points with them.",
        allowed=_NOT_NEGATIVE,
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        L,
        5_000,
        "How often the high watermarks of replicated partitions are written.",
        allowed=_POSITIVE,
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        I,
        None,
        "Partitions that move to another log directory at one time. Default: the number of log directories.",
        nullable=True,
        allowed=_POSITIVE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        L,
        LONG_MAX,
        "Bytes per second at which a partition is copied to another log directory.",
        key="replica.alter.log.dirs.io.max.bytes.per.second",
        allowed=_POSITIVE,
        dynamic=True,
    )
    leader_replication_throttled_rate: int = setting(
        L,
        LONG_MAX,
        "Cluster only: bytes per second that followers which are not in sync may fetch of the replicas in "
        "leader.replication.throttled.replicas.",
        allowed=_NOT_NEGATIVE,
        dynamic=True,
    )
    follower_replication_throttled_rate: int = setting(
        L,
        LONG_MAX,
        "Cluster only: bytes per second that this broker fetches of the replicas in "
        "follower.replication.throttled.replicas while they are not in sync.",
        allowed=_NOT_NEGATIVE,
        dynamic=True,
    )
    log_cleaner_enable: bool = setting(B, True, "Compact topics whose cleanup.policy says so.")
    log_cleaner_threads: int = setting(
        I, 1, "Cleaner processes, each with one log at a time.", allowed=_POSITIVE, dynamic=True
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        L,
        134_217_728,
        "Memory for the keys of logs being compacted, of all cleaners together: 24 bytes for each key.",
        dynamic=True,
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        D,
        0.9,
        "Share of the memory for keys that may be filled. A higher share takes more keys at a time, but is "
        "slower.",
        allowed=between(0.05, 0.99),
        dynamic=True,
    )
    log_cleaner_io_buffer_size: int = setting(
        I,
        524_288,
        "Size of the buffers for reading and writing, of all cleaners together.",
        allowed=_POSITIVE,
        dynamic=True,
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        D,
        sys.float_info.max,
        "Bytes per second that all cleaners together may read and write.",
        allowed=at_least(1),
        dynamic=True,
    )
    log_cleaner_backoff_ms: int = setting(
        L, 15_000, "How long a cleaner waits if no log needs compaction.", allowed=_NOT_NEGATIVE, dynamic=True
    )
    num_recovery_threads_per_data_dir: int = setting(
        I,
        2,
        "Without effect: the logs of a directory are recovered one after the other, before the broker "
        "serves.",
        allowed=_POSITIVE,
        dynamic=True,
    )
    producer_id_expiration_ms: int = setting(
        I,
        86_400_000,
        "The state of a producer that has not written for this time is removed.",
        allowed=_POSITIVE,
        dynamic=True,
    )

    # Groups and their offsets
    offsets_topic_num_partitions: int = setting(I, 50, "Partitions of __consumer_offsets.", allowed=_POSITIVE)
    offsets_topic_replication_factor: int = setting(
        T,
        1,
        "Replicas of __consumer_offsets. More than 1 is for clusters only.",
        allowed=_POSITIVE,
    )
    offsets_topic_segment_bytes: int = setting(
        I, 104_857_600, "segment.bytes of __consumer_offsets.", allowed=_POSITIVE
    )
    offsets_topic_compression_codec: int = setting(
        I, 0, "Codec of __consumer_offsets.", allowed=between(0, 4)
    )
    offsets_retention_minutes: int = setting(
        I, 10_080, "How long an empty group's offsets are kept.", allowed=_POSITIVE
    )
    offsets_retention_check_interval_ms: int = setting(
        L, 600_000, "How often expired offsets are removed.", allowed=_POSITIVE
    )
    offsets_load_buffer_size: int = setting(
        I, 5_242_880, "Without effect: groups are loaded 1 MiB at a time.", allowed=_POSITIVE
    )
    offsets_commit_timeout_ms: int = setting(I, 5_000, "Without effect.", allowed=_POSITIVE)
    offset_metadata_max_bytes: int = setting(
        I, 4_096, "Longest metadata of a committed offset, in characters."
    )
    group_initial_rebalance_delay_ms: int = setting(
        I,
        3_000,
        "How long an empty group waits for more members after the first one joins.",
        allowed=_NOT_NEGATIVE,
    )
    group_min_session_timeout_ms: int = setting(I, 6_000, "Shortest session timeout of a member.")
    group_max_session_timeout_ms: int = setting(I, 1_800_000, "Longest session timeout of a member.")
    group_max_size: int = setting(I, INT_MAX, "Most members of one group.", allowed=_POSITIVE)

    # Transactions
    transaction_state_log_num_partitions: int = setting(
        I, 50, "Partitions of __transaction_state.", allowed=_POSITIVE
    )
    transaction_state_log_replication_factor: int = setting(
        T,
        1,
        "Replicas of __transaction_state. More than 1 is for clusters only.",
        allowed=_POSITIVE,
    )
    transaction_state_log_min_isr: int = setting(
        I,
        1,
        "min.insync.replicas of __transaction_state. More than 1 is for clusters only.",
        allowed=_POSITIVE,
    )
    transaction_state_log_segment_bytes: int = setting(
        I, 104_857_600, "segment.bytes of __transaction_state.", allowed=_POSITIVE
    )
    transaction_max_timeout_ms: int = setting(I, 900_000, "Longest transaction timeout.", allowed=_POSITIVE)
    transactional_id_expiration_ms: int = setting(
        I, 604_800_000, "A transactional id unused for this time is removed.", allowed=_POSITIVE
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        I, 10_000, "How often transactions past their timeout are aborted.", allowed=_POSITIVE
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        I, 3_600_000, "How often expired transactional ids are removed.", allowed=_POSITIVE
    )
    transaction_partition_verification_enable: bool = setting(
        B,
        True,
        "Accept a transactional batch only if its transaction includes the partition (KIP-890).",
        dynamic=True,
    )

    topic_defaults: TopicConfig = field(TopicConfig())
    """Settings of a topic without overrides."""
    explicit: Mapping[str, str] = field({})
    """The keys that were set, with their values as text."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Return the settings in ``properties`` (Kafka's keys, values as text); undeclared keys are ignored.

        Raises ConfigError with the key, the value and what is allowed.
        """
        values: dict[str, Any] = {}
        topic_values: dict[str, Any] = {}
        for key, text in properties.items():
            declared = BROKER_SETTINGS.get(key)
            if declared is None:
                continue
            value = declared.parse(text)
            if key in _OWN_SETTINGS:
                values[declared.field] = value
            if key in TOPIC_FIELD_OF and value is not None:
                topic_values[TOPIC_FIELD_OF[key]] = value
        config = cls(**values, explicit=dict(properties))
        defaults = TopicConfig(**{**config._defaults_in_coarse_units(), **topic_values})
        config = config.replaced(topic_defaults=defaults)
        config.validate()
        return config

    def _defaults_in_coarse_units(self) -> dict[str, int]:
        """Return topic defaults that can also be set in minutes or hours; a key in milliseconds takes
        precedence.
        """
        retention = self.log_retention_hours * 3_600_000
        if self.log_retention_minutes is not None:
            retention = self.log_retention_minutes * 60_000
        return {
            "retention_ms": max(retention, -1),
            "segment_ms": self.log_roll_hours * 3_600_000,
            "segment_jitter_ms": self.log_roll_jitter_hours * 3_600_000,
            "flush_ms": self.log_flush_scheduler_interval_ms,
        }

    @property
    def super_user_names(self) -> tuple[str, ...]:
        """The principals in super.users."""
        return _principals(self.super_users)

    @property
    def is_clustered(self) -> bool:
        """True if this broker joins a cluster: zookeeper.connect is set and not blank."""
        return bool(self.explicit.get(ZOOKEEPER_CONNECT, "").strip())

    def validate(self) -> None:
        """Check values that depend on each other; raises ConfigError."""
        for key in ("default.replication.factor", "offsets.topic.replication.factor"):
            if (factor := getattr(self, key.replace(".", "_"))) > 1 and not self.is_clustered:
                raise ConfigError(key, factor, "1, since there is one broker without zookeeper.connect")
        if not self.authorizer_class_name:
            for key in ("super.users", "allow.everyone.if.no.acl.found"):
                if self.explicit.get(key, "").strip().lower() not in ("", "true"):
                    raise ConfigError(
                        key,
                        self.explicit[key],
                        f"nothing without authorizer.class.name ({AUTHORIZERS[0]}): take it out",
                    )
        directories = [os.path.abspath(path) for path in self.log_dirs]
        if len(set(directories)) < len(directories):
            raise ConfigError("log.dirs", ",".join(self.log_dirs), "each folder once")
        if self.log_cleaner_dedupe_buffer_size < self.log_cleaner_threads * DEDUPE_BUFFER_MIN:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size",
                self.log_cleaner_dedupe_buffer_size,
                f"{DEDUPE_BUFFER_MIN} or more for each of log.cleaner.threads",
            )
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise ConfigError(
                "queued.max.request.bytes",
                self.queued_max_request_bytes,
                f"-1, or at least socket.request.max.bytes, which is {self.socket_request_max_bytes}",
            )
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ConfigError(
                "group.min.session.timeout.ms",
                self.group_min_session_timeout_ms,
                f"at most group.max.session.timeout.ms, which is {self.group_max_session_timeout_ms}",
            )


def _derived_settings() -> tuple[dict[str, Setting], dict[str, str]]:
    """Return the broker-level keys of topic settings, and the topic field each key sets."""
    derived: dict[str, Setting] = {}
    fields: dict[str, str] = {}
    for topic_setting in TOPIC_SETTINGS.values():
        if not topic_setting.broker_keys:
            continue
        key, *coarser = topic_setting.broker_keys
        fields[key] = topic_setting.field
        derived[key] = topic_setting._replace(
            key=key,
            default=None if coarser else topic_setting.default,
            nullable=bool(coarser),
            broker_keys=tuple(coarser),
            dynamic=True,
        )
    derived["log.retention.ms"] = derived["log.retention.ms"]._replace(allowed=_RETENTION)
    return derived, fields


_OWN_SETTINGS: Mapping[str, Setting] = settings_of(BrokerConfig)
_DERIVED, TOPIC_FIELD_OF = _derived_settings()

BROKER_SETTINGS: Mapping[str, Setting] = dict(sorted({**_DERIVED, **_OWN_SETTINGS}.items()))
"""Every key the broker acts on, with its setting."""
