"""Names of files and folders, as in Kafka.

    <log directory>/<topic>-<partition>/<base offset, 20 digits>.log
                                                                .index .timeindex .txnindex .snapshot

Suffixes of files: `.deleted` (a segment that will be unlinked), `.cleaned` and `.swap` (compaction). Suffixes
of folders: `-delete` (a removed log), `-future` (a log that is moved here), `-stray` (a log that was set
aside).
"""

from __future__ import annotations

import os

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
DELETED_FOLDER_SUFFIX = "-delete"
FUTURE_FOLDER_SUFFIX = "-future"
STRAY_FOLDER_SUFFIX = "-stray"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
TRUNCATION = "truncation.tmp"
"""The file in a log's folder while its end is being truncated; Kafka does not have it."""
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
REMOVAL_OFFSET = "removal-offset-checkpoint"
"""The file in a log's folder that `removals` describes; Kafka does not have it, and leaves it alone."""
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


def partition_folder(topic: str, partition: int) -> str:
    """Return the folder name of a partition's log."""
    return f"{topic}-{partition}"


def parse_partition_folder(name: str) -> TopicPartition | None:
    """Return topic and partition of a folder name, None if it is not a log's."""
    topic, dash, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition)) if dash and topic and partition.isdecimal() else None


def deleted_folder(topic: str, partition: int) -> str:
    """Return an unused name for a deleted log's folder; the topic is shortened to fit the file system."""
    return _fresh_folder(topic, partition, DELETED_FOLDER_SUFFIX)


def stray_folder(topic: str, partition: int) -> str:
    """Return an unused name for a log's folder that does not belong here but must not be deleted unasked."""
    return _fresh_folder(topic, partition, STRAY_FOLDER_SUFFIX)


def future_folder(topic: str, partition: int) -> str:
    """Return an unused name for the folder that a log is moved into; raises ValueError if it is too long."""
    name = f"{topic}-{partition}.{unique()}{FUTURE_FOLDER_SUFFIX}"
    if len(name) > NAME_MAX:
        raise ValueError(f"{name} is longer than {NAME_MAX} bytes")
    return name


def parse_future_folder(name: str) -> TopicPartition | None:
    """Return topic and partition of a log that is being moved into this folder, None for other folders."""
    stem, dot, unique = name.removesuffix(FUTURE_FOLDER_SUFFIX).rpartition(".")
    if not name.endswith(FUTURE_FOLDER_SUFFIX) or not dot or len(unique) != 32:
        return None
    return parse_partition_folder(stem)


def _fresh_folder(topic: str, partition: int, suffix: str) -> str:
    suffix = f"-{partition}.{unique()}{suffix}"
    return topic[: NAME_MAX - len(suffix)] + suffix


def unique() -> str:
    """Return 32 random hexadecimal digits, which make a folder's name unique, as in Kafka."""
    return os.urandom(16).hex()
