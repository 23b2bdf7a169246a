"""The folders of ``log.dirs``: which serve, which do not, and which takes a new partition."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from logd.config.topic import TopicConfig
from logd.errors import ErrorCode, KafkaError
from logd.metadata.image import TopicImage
from logd.storage import StorageError
from logd.storage.checkpoints import read_partition_metadata
from logd.storage.log.future import promote
from logd.storage.names import PARTITION_METADATA
from logd.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.storage import Log, LogFolder

PREFERRED_MAX = 10_000
"""Folders remembered for partitions that do not exist yet; the oldest wish is forgotten."""

log = logging.getLogger("logd.broker")


class Space(NamedTuple):
    """Bytes of the volume a folder is on (KIP-827); -1 where the system does not say."""

    total: int
    usable: int


class LogDirs:
    """``folders`` were opened at the start, in the order of ``paths``; ``unusable`` says why the others were
    not.
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
    def announced_epoch(self) -> int:
        """The largest leader epoch that any log began after an unclean stop, as of this start."""
        return max((folder.announced_epoch for folder in self.folders), default=0)

    def folder(self, path: str) -> LogFolder:
        """The folder that serves under this path; KafkaError LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR."""
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
        """Where to create a partition, best first: the preferred folder, then those with fewest logs."""
        wanted = self._preferred.pop(TopicPartition(topic, partition), None)
        return sorted(
            self.online, key=lambda folder: (absolute(folder.path) != wanted, folder.partition_count)
        )

    # At the start

    def leave_out(self, error: StorageError) -> None:
        """A folder cannot be used, for a reason of its own."""
        self.unusable[absolute(error.folder)] = error.reason
        log.error("%s; left out: what is in there is not served until a restart finds it well", error)

    def identify(self, home: LogFolder) -> str:
        """Have all folders say that they are of one cluster, whose journal is in ``home``; the cluster's id.

        Nothing is written where one of them is another cluster's: FolderMismatch. Blocks.
        """
        ordered = [home, *(folder for folder in self.folders if folder is not home)]
        cluster_id = next((folder.cluster_id for folder in ordered if folder.cluster_id), None)
        for folder in ordered:
            folder.identity.check(folder.path, node_id=folder.node_id, cluster_id=cluster_id)
        for folder in ordered:
            try:
                folder.identify(cluster_id or home.cluster_id, journal_id=home.directory_id)
            except StorageError as error:
                if folder is home:
                    raise
                folder.unlock()
                self.folders.remove(folder)
                self.leave_out(error)
        return home.cluster_id

    def put_futures_in_place(
        self, topics: Mapping[str, TopicImage], config_for: Callable[[str], TopicConfig], now_ms: int
    ) -> None:
        """A crash between the two renames of a move left a whole copy and nothing else: that is the log now.

        Where a folder does not serve, its log may be in there: it waits for that folder.
        """
        known = {key for folder in self.folders for key in folder.logs}
        for folder in self.online if self.is_complete else ():
            for key, paths in tuple(folder.futures.items()):
                topic = topics.get(key.topic)
                topic_id = read_partition_metadata(paths[0] / PARTITION_METADATA)
                if key not in known and topic is not None and topic_id in (None, topic.topic_id):
                    promote(folder, *key, paths.pop(0), config_for(key[0]), now_ms)
                    known.add(key)
                    log.info("%s-%d had moved to %s", *key, folder.path)

    def set_remains_aside(self, topics: Mapping[str, TopicImage]) -> None:
        """Take out what a power loss has left of logs that were never flushed, of topics that are no more.

        They do not say legibly whose they are, or there is nothing in them; a log with records that does not
        say it at all is from elsewhere.
        """
        for folder in self.online:
            for key, found in tuple(folder.logs.items()):
                is_nameless = key[0] not in topics and found.topic_id is None
                if is_nameless and ((found.folder / PARTITION_METADATA).exists() or not found.log_end_offset):
                    place = folder.set_aside(*key)
                    log.error("%s-%d is of no topic that is known: it is left in %s", *key, place)

    def logs(self, topics: Mapping[str, TopicImage]) -> dict[str, dict[int, Log]]:
        """The logs found, by topic and partition.

        A partition found twice (a power loss forgot one of a move's renames) goes by its topic's id, then by
        its length: the shorter log is the beginning of the longer one. The other is set aside.
        """
        found: dict[str, dict[int, Log]] = {}
        homes: dict[TopicPartition, LogFolder] = {}
        for folder in self.folders:
            for key, other in tuple(folder.logs.items()):
                logs = found.setdefault(key.topic, {})
                current = logs.get(key.partition)
                topic = topics.get(key.topic)
                topic_id = topic.topic_id if topic is not None else None
                if current is not None and _rank(current, topic_id) >= _rank(other, topic_id):
                    self._set_aside(folder, key, homes[key])
                    continue
                if current is not None:
                    self._set_aside(homes[key], key, folder)
                logs[key.partition], homes[key] = other, folder
        return found

    @staticmethod
    def _set_aside(folder: LogFolder, key: TopicPartition, other: LogFolder) -> None:
        place = folder.set_aside(*key)
        log.error("%s-%d was found twice: %s serves it, the other is left in %s", *key, other.path, place)


def _rank(found: Log, topic_id: bytes | None) -> tuple[bool, int]:
    return found.topic_id == topic_id, found.log_end_offset


def absolute(path: str | Path) -> Path:
    """A folder's path as it is compared and shown."""
    return Path(os.path.abspath(path))


def space_of(path: Path) -> Space:
    """How large the volume of ``path`` is, and how much of it can still be written. Blocks."""
    try:
        volume = os.statvfs(path)
    except OSError as error:
        log.warning("the size of %s's volume is not known: %s", path, error)
        return Space(-1, -1)
    return Space(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)
