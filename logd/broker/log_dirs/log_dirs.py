"""The directories of ``log.dirs``: which serve, which do not, and which takes a new partition."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.storage import LogDirectory, StorageError

PREFERRED_MAX = 10_000
"""Directories remembered for partitions that do not exist yet; the oldest wish is forgotten."""

log = logging.getLogger("logd.broker")


class Space(NamedTuple):
    """Bytes of the volume a directory is on (KIP-827); -1 where the system does not say."""

    total: int
    usable: int


class LogDirs:
    """``directories`` were opened at the start (`log_dirs_opening`), in the order of ``paths``; ``unusable``
    says why the others were not.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(absolute(path) for path in paths)
        self.directories: list[LogDirectory] = []
        self.unusable: dict[Path, str] = {}
        self._preferred: dict[TopicPartition, Path] = {}

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self.directories)

    @property
    def online(self) -> list[LogDirectory]:
        """The directories that serve."""
        return [directory for directory in self.directories if directory.failure is None]

    @property
    def is_complete(self) -> bool:
        """True if every directory serves: what is in none of them then is nowhere."""
        return len(self.online) == len(self.paths)

    @property
    def failed(self) -> list[str]:
        """The paths of those that do not serve."""
        serving = {absolute(directory.path) for directory in self.online}
        return [str(path) for path in self.paths if path not in serving]

    @property
    def announced_epoch(self) -> int:
        """The largest leader epoch that any log began after an unclean stop, as of this start."""
        return max((directory.announced_epoch for directory in self.directories), default=0)

    def directory(self, path: str) -> LogDirectory:
        """Return the directory with this path. Raises KafkaError(LOG_DIR_NOT_FOUND) or
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        requested = absolute(path)
        if requested not in self.paths:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        for directory in self.online:
            if absolute(directory.path) == requested:
                return directory
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {requested} is offline")

    def prefer(self, topic: str, partition: int, path: str) -> None:
        """Have a partition that does not exist yet created there. Kept in memory, as Kafka does."""
        self._preferred.pop(TopicPartition(topic, partition), None)
        if len(self._preferred) >= PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[TopicPartition(topic, partition)] = absolute(path)

    def for_new(self, topic: str, partition: int) -> list[LogDirectory]:
        """Return the directories for a new partition, best first: the preferred one, then those with fewest
        logs.
        """
        preferred = self._preferred.pop(TopicPartition(topic, partition), None)
        return sorted(
            self.online,
            key=lambda directory: (absolute(directory.path) != preferred, directory.partition_count),
        )

    def leave_out(self, error: StorageError) -> None:
        """Leave out a log directory that cannot be used, until the next start."""
        self.unusable[absolute(error.directory)] = error.reason
        log.error("%s; log directory disabled until the next restart", error)

    def close(self, watermarks: Mapping[TopicPartition, int] | None) -> None:
        """Flush and close every directory, with clean-shutdown marker and these high watermarks. Blocks."""
        for directory in self.directories:
            try:
                directory.close(watermarks)
            except (KafkaError, OSError) as error:
                log.error("log directory %s not closed cleanly: %s", directory.path, error)


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
