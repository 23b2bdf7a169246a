"""The settings of one topic, under Kafka's keys.

A topic's effective settings are its own overrides on top of the broker's defaults
(``BrokerConfig.topic_defaults``). The defaults come from the broker-level keys: ``segment.bytes`` from
``log.segment.bytes``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafka_client.errors import ConfigError
from logd.config.setting import (
    LONG_MAX,
    Allowed,
    Kind,
    Setting,
    any_of,
    at_least,
    between,
    one_of,
    setting,
    settings_of,
)
from logd.config.settings import Settings

_REPLICA = re.compile(r"\d+:\d+")
_THROTTLED = Allowed(
    check=lambda words: words == ("*",) or all(_REPLICA.fullmatch(word) for word in words),
    text="partition:broker each, or *",
)
COMPRESSION_TYPES = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")


class TopicConfig(Settings):
    """Effective settings of one topic; sizes in bytes, times in milliseconds, -1 means no limit."""

    cleanup_policy: tuple[str, ...] = setting(
        Kind.LIST,
        ("delete",),
        "What is done with old segments. delete: remove them by retention. compact: keep each key's last "
        "record. Empty: keep them.",
        allowed=any_of("delete", "compact"),
        broker_keys=("log.cleanup.policy",),
    )
    compression_gzip_level: int = setting(
        Kind.INT,
        -1,
        "Level used when compression.type is gzip.",
        allowed=Allowed(check=lambda level: level == -1 or 1 <= level <= 9, text="1 to 9, or -1"),
        broker_keys=("compression.gzip.level",),
    )
    compression_lz4_level: int = setting(
        Kind.INT,
        9,
        "Level used when compression.type is lz4.",
        allowed=between(1, 17),
        broker_keys=("compression.lz4.level",),
    )
    compression_type: str = setting(
        Kind.STRING,
        "producer",
        "Codec of stored batches; producer keeps the producer's codec.",
        allowed=one_of(*COMPRESSION_TYPES),
        broker_keys=("compression.type",),
    )
    compression_zstd_level: int = setting(
        Kind.INT,
        3,
        "Level used when compression.type is zstd.",
        allowed=between(-131072, 22),
        broker_keys=("compression.zstd.level",),
    )
    delete_retention_ms: int = setting(
        Kind.LONG,
        86_400_000,
        "How long a compacted topic keeps tombstones.",
        allowed=at_least(0),
        broker_keys=("log.cleaner.delete.retention.ms",),
    )
    file_delete_delay_ms: int = setting(
        Kind.LONG,
        60_000,
        "How long a removed file stays on disk.",
        allowed=at_least(0),
        broker_keys=("log.segment.delete.delay.ms",),
    )
    flush_messages: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Records after which the log is synced to the disk.",
        allowed=at_least(1),
        broker_keys=("log.flush.interval.messages",),
    )
    flush_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Time after which the log is synced to the disk.",
        allowed=at_least(0),
        broker_keys=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Replicas whose copying is throttled on the follower's side, as partition:broker, or * for all.",
        allowed=_THROTTLED,
    )
    index_interval_bytes: int = setting(
        Kind.INT,
        4096,
        "Bytes of log between two index entries.",
        allowed=at_least(0),
        broker_keys=("log.index.interval.bytes",),
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Replicas whose copying is throttled on the leader's side, as partition:broker, or * for all.",
        allowed=_THROTTLED,
    )
    local_retention_bytes: int = setting(
        Kind.LONG,
        -2,
        "Without effect: there is no tiered storage.",
        allowed=at_least(-2),
        broker_keys=("log.local.retention.bytes",),
    )
    local_retention_ms: int = setting(
        Kind.LONG,
        -2,
        "Without effect: there is no tiered storage.",
        allowed=at_least(-2),
        broker_keys=("log.local.retention.ms",),
    )
    max_compaction_lag_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Longest time that a record stays uncompacted.",
        allowed=at_least(1),
        broker_keys=("log.cleaner.max.compaction.lag.ms",),
    )
    max_decompressed_message_bytes: int = setting(
        Kind.INT,
        2_147_483_639,
        "Largest record accepted in a compressed batch, after decompression. If stored records are larger, "
        "compaction and the lookup of offsets by time fail.",
        allowed=between(1, 2_147_483_639),
        broker_keys=("max.decompressed.message.bytes",),
    )
    max_message_bytes: int = setting(
        Kind.INT,
        1_048_588,
        "Largest record batch accepted, in its compressed size.",
        allowed=at_least(0),
        broker_keys=("message.max.bytes",),
    )
    message_timestamp_after_max_ms: int = setting(
        Kind.LONG,
        3_600_000,
        "How far a record's time may lie ahead of the broker's clock.",
        allowed=at_least(0),
        broker_keys=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "How far a record's time may lie behind the broker's clock.",
        allowed=at_least(0),
        broker_keys=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_type: str = setting(
        Kind.STRING,
        "CreateTime",
        "Whether a record carries the producer's time or the time of its append.",
        allowed=one_of("CreateTime", "LogAppendTime"),
        broker_keys=("log.message.timestamp.type",),
    )
    min_cleanable_dirty_ratio: float = setting(
        Kind.DOUBLE,
        0.5,
        "Share of a log that must be uncompacted before it is compacted.",
        allowed=between(0, 1),
        broker_keys=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = setting(
        Kind.LONG,
        0,
        "Shortest time that a record stays uncompacted.",
        allowed=at_least(0),
        broker_keys=("log.cleaner.min.compaction.lag.ms",),
    )
    min_insync_replicas: int = setting(
        Kind.INT,
        1,
        "Replicas that must have a write before acks=all is answered; at most the number of replicas.",
        allowed=at_least(1),
        broker_keys=("min.insync.replicas",),
    )
    preallocate: bool = setting(
        Kind.BOOLEAN,
        False,
        "Allocate room on the disk for a whole segment when it is started.",
        broker_keys=("log.preallocate",),
    )
    remote_log_copy_disable: bool = setting(
        Kind.BOOLEAN, False, "Without effect: there is no tiered storage."
    )
    remote_log_delete_on_disable: bool = setting(
        Kind.BOOLEAN, False, "Without effect: there is no tiered storage."
    )
    remote_storage_enable: bool = setting(Kind.BOOLEAN, False, "true is refused: there is no tiered storage.")
    retention_bytes: int = setting(
        Kind.LONG,
        -1,
        "Bytes a partition may hold before old segments are deleted.",
        allowed=at_least(-1),
        broker_keys=("log.retention.bytes",),
    )
    retention_ms: int = setting(
        Kind.LONG,
        604_800_000,
        "Time a record is kept before its segment is deleted.",
        allowed=at_least(-1),
        broker_keys=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    segment_bytes: int = setting(
        Kind.INT,
        1_073_741_824,
        "Size at which the next segment is started.",
        allowed=at_least(14),
        broker_keys=("log.segment.bytes",),
    )
    segment_index_bytes: int = setting(
        Kind.INT,
        10_485_760,
        "Largest size of each index file of a segment.",
        allowed=at_least(4),
        broker_keys=("log.index.size.max.bytes",),
    )
    segment_jitter_ms: int = setting(
        Kind.LONG,
        0,
        "Most random time subtracted from segment.ms, so that logs do not roll at the same time.",
        allowed=at_least(0),
        broker_keys=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_ms: int = setting(
        Kind.LONG,
        604_800_000,
        "Time after which the next segment is started even if this one is not full.",
        allowed=at_least(1),
        broker_keys=("log.roll.ms", "log.roll.hours"),
    )
    unclean_leader_election_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Let a replica out of sync lead if no replica in sync is online. Records are lost.",
        broker_keys=("unclean.leader.election.enable",),
    )

    @property
    def is_compacted(self) -> bool:
        """True if the topic is compacted; every record must then have a key."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """True if segments are deleted by time and size retention."""
        return "delete" in self.cleanup_policy

    def overridden(self, overrides: Mapping[str, str]) -> TopicConfig:
        """Return these settings with a topic's overrides (Kafka's keys, values as text) on top.

        Raises ConfigError for a key that is no topic setting, or a value that is not allowed.
        """
        values: dict[str, Any] = {}
        for key, text in overrides.items():
            declared = TOPIC_SETTINGS.get(key)
            if declared is None:
                raise ConfigError(key, text, unknown_topic_key(key))
            values[declared.field] = declared.parse(text)
        changed = self.replaced(**values) if values else self
        if changed.min_compaction_lag_ms > changed.max_compaction_lag_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                changed.min_compaction_lag_ms,
                f"at most max.compaction.lag.ms, which is {changed.max_compaction_lag_ms}",
            )
        return changed


TOPIC_SETTINGS: Mapping[str, Setting] = settings_of(TopicConfig)


def unknown_topic_key(key: str) -> str:
    """Return what the error about an unknown topic ``key`` names as allowed: the nearest known key."""
    import difflib

    nearest = difflib.get_close_matches(key, TOPIC_SETTINGS, n=1)
    return f"a topic setting, such as {nearest[0]}" if nearest else "a topic setting of Kafka"
