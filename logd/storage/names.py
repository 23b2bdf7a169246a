"""Names of files and directories, as in Kafka.

    <log directory>/<topic>-<partition>/<base offset, 20 digits>.log
                                                                .index .timeindex .txnindex .snapshot

Suffixes of files: `.deleted` (a segment that will be unlinked), `.cleaned` and `.swap` (compaction). Suffixes
of directories: `-delete` (a removed log), `-future` (a log that is moved here), `-stray` (a log that was set
aside).
"""

from __future__ import annotations

import os
from pathlib import Path

from kafka_client.topic_partition import TopicPartition

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"
DELETED_DIRECTORY_SUFFIX = "-delete"
FUTURE_DIRECTORY_SUFFIX = "-future"
STRAY_DIRECTORY_SUFFIX = "-stray"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
TRUNCATION = "truncation.tmp"
"""The file in a log's directory while its end is being truncated; Kafka does not have it."""
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
REMOVAL_OFFSET = "removal-offset-checkpoint"
"""The file in a log's directory that `removals` describes; Kafka does not have it, and leaves it alone."""
RECOVERY_EPOCH = "recovery-leader-epoch-checkpoint"
"""The file of `recovery_epoch`. Kafka does not have it, since its controller assigns leader epochs, and
leaves it alone.
"""
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

NAME_MAX = 255
"""Most bytes of a file name on all common file systems."""


def offset_name(offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{offset:020d}{suffix}"


def parse_offset(name: str, suffix: str) -> int | None:
    """Return the offset in a file name with this suffix, None if it is another kind of file."""
    stem = name.removesuffix(suffix)
    return int(stem) if stem != name and len(stem) == 20 and stem.isdecimal() else None


def partition_directory(topic: str, partition: int) -> str:
    """Return the directory name of a partition's log."""
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> TopicPartition | None:
    """Return topic and partition of a directory name, None if it is not a log's."""
    topic, dash, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition)) if dash and topic and partition.isdecimal() else None


def deleted_directory(topic: str, partition: int) -> str:
    """Return an unused name for a deleted log's directory; the topic is shortened to fit the file system."""
    return _fresh_directory(topic, partition, DELETED_DIRECTORY_SUFFIX)


def stray_directory(topic: str, partition: int) -> str:
    """Return an unused name for the directory of a log that does not belong here and must be kept."""
    return _fresh_directory(topic, partition, STRAY_DIRECTORY_SUFFIX)


def future_directory(topic: str, partition: int) -> str:
    """Return an unused name for the directory a log is moved into. Raises ValueError if it is too long."""
    name = f"{topic}-{partition}.{unique()}{FUTURE_DIRECTORY_SUFFIX}"
    if len(name) > NAME_MAX:
        raise ValueError(f"{name} is longer than {NAME_MAX} bytes")
    return name


def log_fields(directory: Path) -> dict[str, str | int]:
    """Return the fields for the log's messages about a partition's directory: its topic and partition."""
    tp = parse_partition_directory(directory.name)
    return {} if tp is None else {"topic": tp.topic, "partition": tp.partition}


def parse_future_directory(name: str) -> TopicPartition | None:
    """Return topic and partition of a log that is being moved into this directory, None for other
    directories.
    """
    stem, dot, unique = name.removesuffix(FUTURE_DIRECTORY_SUFFIX).rpartition(".")
    if not name.endswith(FUTURE_DIRECTORY_SUFFIX) or not dot or len(unique) != 32:
        return None
    return parse_partition_directory(stem)


def _fresh_directory(topic: str, partition: int, suffix: str) -> str:
    suffix = f"-{partition}.{unique()}{suffix}"
    return topic[: NAME_MAX - len(suffix)] + suffix


def unique() -> str:
    """Return 32 random hexadecimal digits, which make a directory's name unique, as in Kafka."""
    return os.urandom(16).hex()
