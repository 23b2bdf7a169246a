"""Opening the directories of ``log.dirs`` at the start: whose they are, their logs, and what crashes have
left.

In this order: `lock`, `identify`, `open_logs`, then what puts the logs in order, once the topics are known.
All of it blocks, before anything is served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_client.errors import KafkaError
from logd.metadata.journal_store import FILE_NAME
from logd.storage import DirectoryLocked, DirectoryMismatch, LogDirectory, StorageError
from logd.storage.checkpoints import read_partition_metadata
from logd.storage.identity import DirectoryIdentity
from logd.storage.names import PARTITION_METADATA

if TYPE_CHECKING:
    from logd.broker.log_dirs.log_dirs import LogDirs
    from logd.config.topic import TopicConfig
    from logd.metadata.image import TopicImage
    from logd.storage import Deletion
    from logd.storage.disk import Disk

log = logging.getLogger("logd.broker")


class LogDirsOpening:
    """The opening of all log directories at a broker's start, step by step.

    A directory that cannot be used goes offline, and the broker starts without it.
    """

    def __init__(self, log_dirs: LogDirs) -> None:
        self._dirs = log_dirs

    def lock(
        self, paths: Iterable[Path], *, node_id: int, disk: Disk, on_offline: Callable[[str], None]
    ) -> list[StorageError]:
        """Lock every directory; what is wrong with those that cannot be used, which the caller has left out.

        Raises DirectoryLocked, DirectoryMismatch: what somebody else uses is not left out, it is a mistake.
        """
        unusable = []
        for path in paths:
            try:
                directory = LogDirectory.lock(path, node_id=node_id, on_offline=on_offline, disk=disk)
            except (DirectoryLocked, DirectoryMismatch):
                raise
            except StorageError as error:
                unusable.append(error)
            else:
                self._dirs.directories.append(directory)
        return unusable

    def check(self, home: LogDirectory) -> None:
        """Check that all directories belong to one broker and one cluster. Raises DirectoryMismatch."""
        ordered = self._from(home)
        cluster_id = _cluster_of(ordered)
        for directory in ordered:
            directory.identity.check(directory.path, node_id=directory.node_id, cluster_id=cluster_id)

    def identify(self, home: LogDirectory) -> str:
        """Have all directories say that they are of one cluster, whose journal is in ``home``; the cluster's
        id.

        Once they are checked, and the journal is on the disk: a directory that says so without one is
        refused. Blocks.
        """
        ordered = self._from(home)
        cluster_id = _cluster_of(ordered)
        for directory in ordered:
            try:
                directory.identify(cluster_id or home.cluster_id, journal_id=home.directory_id)
            except StorageError as error:
                if directory is home:
                    raise
                self._leave_out(directory, error)
        return home.cluster_id

    @staticmethod
    def refuse_journals(paths: Iterable[Path]) -> None:
        """Raise DirectoryMismatch if a directory has the journal of a standalone broker.

        Call it before the broker joins a cluster. Otherwise the broker's start would give an id to the chroot
        to which the journal is to be moved.
        """
        for path in paths:
            if (path / FILE_NAME).exists():
                raise DirectoryMismatch(
                    path,
                    f"holds {FILE_NAME}, the metadata of a broker by itself, with which it cannot join a "
                    "cluster: move that to ZooKeeper with `millstream cluster move-to-zookeeper`, start it "
                    "without zookeeper.connect, or give it other log.dirs",
                )

    @staticmethod
    def identities(paths: Iterable[Path], node_id: int) -> dict[Path, DirectoryIdentity]:
        """Return the identities in these directories' files, where they can be read; nothing is changed.

        Raises DirectoryMismatch if a directory is another broker's.
        """
        by_path = {}
        for path in paths:
            with suppress(OSError):  # the lock reports it
                by_path[path] = DirectoryIdentity.read(path)
                by_path[path].check(path, node_id=node_id, cluster_id=None)
        return by_path

    def identify_in(self, cluster_id: str, zookeeper: str) -> None:
        """Have all directories say that they are of a cluster that keeps its metadata in ZooKeeper. Blocks.

        DirectoryMismatch where one is another node's or another cluster's.
        """
        for directory in self._dirs.directories:
            directory.identity.check(directory.path, node_id=directory.node_id, cluster_id=cluster_id)
        for directory in tuple(self._dirs.directories):
            try:
                directory.identify(cluster_id, zookeeper=zookeeper)
            except DirectoryMismatch:
                raise
            except StorageError as error:
                self._leave_out(directory, error)

    def open_replicas(self, defaults: TopicConfig, now_ms: int) -> None:
        """Open every log, of topics that are not known yet: leader epochs begin when the controller says so.
        StorageError when no directory can be used.
        """
        first: StorageError | None = None
        for directory in tuple(self._dirs.directories):
            try:
                directory.open_logs(lambda topic: defaults, now_ms, is_replicated=True)
            except (StorageError, KafkaError) as error:
                if not isinstance(error, StorageError):
                    error = StorageError(directory.path, str(error))
                first = first or error
                self._dirs.directories.remove(directory)
                self._dirs.leave_out(error)
        if first is not None and not self._dirs.directories:
            raise first

    def _leave_out(self, directory: LogDirectory, error: StorageError) -> None:
        directory.unlock()
        self._dirs.directories.remove(directory)
        self._dirs.leave_out(error)

    def _from(self, home: LogDirectory) -> list[LogDirectory]:
        return [home, *(directory for directory in self._dirs.directories if directory is not home)]

    def open_logs(self, home: LogDirectory, config_for: Callable[[str], TopicConfig], now_ms: int) -> None:
        """Open every log, with recovery after an unclean stop. StorageError when ``home`` cannot be used."""
        for directory in tuple(self._dirs.directories):
            try:
                directory.open_logs(config_for, now_ms)
            except (StorageError, KafkaError) as error:
                if not isinstance(error, StorageError):
                    error = StorageError(directory.path, str(error))
                if directory is home:
                    raise error from None
                self._dirs.directories.remove(directory)
                self._dirs.leave_out(error)

    def delete_logs_of(self, topic_ids: Container[bytes]) -> list[Deletion]:
        """Take the logs of deleted topics out, for good: the journal may forget those topics then."""
        deletions: list[Deletion] = []
        for directory in self._dirs.directories:
            deleted = [
                directory.delete_log(*key)
                for key, opened in tuple(directory.logs.items())
                if opened.topic_id is not None and opened.topic_id in topic_ids
            ]
            if deleted:
                directory.sync()
                deletions += deleted
        return deletions

    def put_futures_in_place(
        self, topics: Mapping[str, TopicImage], config_for: Callable[[str], TopicConfig], now_ms: int
    ) -> None:
        """Rename copies that a crash between the two renames of a move has left as the only log.

        If a log directory does not serve, the log may be in there: the copy waits for that directory.
        """
        served = {key for directory in self._dirs.directories for key in directory.logs}
        for directory in self._dirs.online if self._dirs.is_complete else ():
            for key, paths in tuple(directory.futures.items()):
                topic = topics.get(key.topic)
                topic_id = read_partition_metadata(paths[0] / PARTITION_METADATA)
                if key not in served and topic is not None and topic_id in (None, topic.topic_id):
                    from logd.storage.future_log import promote  # after a crash only

                    promote(directory, *key, paths.pop(0), config_for(key[0]), now_ms)
                    served.add(key)
                    log.info("%s had moved to %s", key, directory.path)

    def set_remains_aside(self, topics: Mapping[str, TopicImage]) -> None:
        """Take out what a power loss has left of logs that were never flushed, of topics that are no more.

        They do not say legibly whose they are, or there is nothing in them; a log with records that does not
        say it at all is from elsewhere.
        """
        for directory in self._dirs.online:
            for key, recovered in tuple(directory.logs.items()):
                is_nameless = key[0] not in topics and recovered.topic_id is None
                if is_nameless and (
                    (recovered.directory / PARTITION_METADATA).exists() or not recovered.log_end_offset
                ):
                    place = directory.set_aside(*key)
                    log.error("%s is of no topic that is known: it is left in %s", key, place)


def _cluster_of(directories: Iterable[LogDirectory]) -> str | None:
    return next((directory.cluster_id for directory in directories if directory.cluster_id), None)
