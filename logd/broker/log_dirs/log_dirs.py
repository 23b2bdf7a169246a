"""The folders of ``log.dirs``: which serve, which do not, and which takes a new partition."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.storage import LogFolder, StorageError

PREFERRED_MAX = 10_000
"""Folders remembered for partitions that do not exist yet; the oldest wish is forgotten."""

log = logging.getLogger("logd.broker")


class Space(NamedTuple):
    """Bytes of the volume a folder is on (KIP-827); -1 where the system does not say."""

    total: int
    usable: int


class LogDirs:
    """``folders`` were opened at the start (`log_dirs_opening`), in the order of ``paths``; ``unusable`` says
    why the others were not.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(absolute(path) for path in paths)
        self.folders: list[LogFolder] = []
        self.unusable: dict[Path, str] = {}
        self._preferred: dict[TopicPartition, Path] = {}

    def __iter__(self) -> Iterator[LogFolder]:
        return iter(self.folders)

    @property
    def online(self) -> list[LogFolder]:
        """The folders that serve."""
        return [folder for folder in self.folders if folder.failure is None]

    @property
    def is_complete(self) -> bool:
        """Whether every folder serves: what is in none of them then is nowhere."""
        return len(self.online) == len(self.paths)

    @property
    def failed(self) -> list[str]:
        """The paths of those that do not serve."""
        serving = {absolute(folder.path) for folder in self.online}
        return [str(path) for path in self.paths if path not in serving]

    @property
    def announced_epoch(self) -> int:
        """The largest leader epoch that any log began after an unclean stop, as of this start."""
        return max((folder.announced_epoch for folder in self.folders), default=0)

    def folder(self, path: str) -> LogFolder:
        """Return the directory with this path. Raises KafkaError(LOG_DIR_NOT_FOUND) or
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        wanted = absolute(path)
        if wanted not in self.paths:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        for folder in self.online:
            if absolute(folder.path) == wanted:
                return folder
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log folder {wanted} is offline")

    def prefer(self, topic: str, partition: int, path: str) -> None:
        """Have a partition that does not exist yet created there. Kept in memory, as Kafka does."""
        self._preferred.pop(TopicPartition(topic, partition), None)
        if len(self._preferred) >= PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[TopicPartition(topic, partition)] = absolute(path)

    def for_new(self, topic: str, partition: int) -> list[LogFolder]:
        """Return the directories for a new partition, best first: the preferred one, then those with fewest
        logs.
        """
        wanted = self._preferred.pop(TopicPartition(topic, partition), None)
        return sorted(
            self.online, key=lambda folder: (absolute(folder.path) != wanted, folder.partition_count)
        )

    def leave_out(self, error: StorageError) -> None:
        """Leave out a log directory that cannot be used, until the next start."""
        self.unusable[absolute(error.folder)] = error.reason
        log.error("%s; log directory disabled until the next restart", error)

    def close(self, watermarks: Mapping[TopicPartition, int] | None) -> None:
        """Close every folder: flushed, with its clean-shutdown marker and these high watermarks. Blocks."""
        for folder in self.folders:
            try:
                folder.close(watermarks)
            except (KafkaError, OSError) as error:
                log.error("log folder %s not closed cleanly: %s", folder.path, error)


def absolute(path: str | Path) -> Path:
    """Return a directory's path in the form in which it is compared and shown."""
    return Path(os.path.abspath(path))


def space_of(path: Path) -> Space:
    """Return the size of the volume of ``path``, and how much of it can still be written. Blocks."""
    try:
        volume = os.statvfs(path)
    except OSError as error:
        log.warning("the size of %s's volume is not known: %s", path, error)
        return Space(-1, -1)
    return Space(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)
