"""Names of files and folders, as Kafka gives them.

<log folder>/<topic>-<partition>/<base offset, 20 digits>.log   and .index .timeindex .txnindex .snapshot
suffixes: .deleted (segment waiting to be unlinked), .cleaned and .swap (compaction), -delete (whole log),
-future (whole log on its way to here), -stray (whole log that was set aside)
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
"""Not Kafka's: in a log's folder while its end is being cut."""
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
REMOVAL_OFFSET = "removal-offset-checkpoint"
"""Not Kafka's, which leaves it alone: in a log's folder, see `removals`."""
RECOVERY_EPOCH = "recovery-leader-epoch-checkpoint"
"""Not Kafka's, which leaves it alone: its controller hands out leader epochs."""
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

NAME_MAX = 255
"""Bytes a file name may have on any common file system."""


def offset_name(offset: int, suffix: str) -> str:
    """A segment file's name."""
    return f"{offset:020d}{suffix}"


def parse_offset(name: str, suffix: str) -> int | None:
    """The offset in a file name with this suffix, None if it is another kind of file."""
    stem = name.removesuffix(suffix)
    return int(stem) if stem != name and len(stem) == 20 and stem.isdecimal() else None


def partition_folder(topic: str, partition: int) -> str:
    """The folder name of a partition's log."""
    return f"{topic}-{partition}"


def parse_partition_folder(name: str) -> TopicPartition | None:
    """Topic and partition of a folder name, None if it is no log's."""
    topic, dash, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition)) if dash and topic and partition.isdecimal() else None


def deleted_folder(topic: str, partition: int) -> str:
    """A fresh name for a deleted log's folder; its topic is shortened to fit the file system."""
    return _fresh_folder(topic, partition, DELETED_FOLDER_SUFFIX)


def stray_folder(topic: str, partition: int) -> str:
    """A fresh name for a log's folder that has no place here, but that nobody may delete unasked."""
    return _fresh_folder(topic, partition, STRAY_FOLDER_SUFFIX)


def future_folder(topic: str, partition: int) -> str:
    """A fresh name for the folder a log is being moved into; ValueError if no file may be called so."""
    name = f"{topic}-{partition}.{unique()}{FUTURE_FOLDER_SUFFIX}"
    if len(name) > NAME_MAX:
        raise ValueError(f"{name} is longer than {NAME_MAX} bytes")
    return name


def parse_future_folder(name: str) -> TopicPartition | None:
    """Topic and partition of a log that is being moved into this folder, None if it is no such folder."""
    stem, dot, unique = name.removesuffix(FUTURE_FOLDER_SUFFIX).rpartition(".")
    if not name.endswith(FUTURE_FOLDER_SUFFIX) or not dot or len(unique) != 32:
        return None
    return parse_partition_folder(stem)


def _fresh_folder(topic: str, partition: int, suffix: str) -> str:
    suffix = f"-{partition}.{unique()}{suffix}"
    return topic[: NAME_MAX - len(suffix)] + suffix


def unique() -> str:
    """What no other folder has in its name, as Kafka writes it: 32 hexadecimal digits."""
    return os.urandom(16).hex()
