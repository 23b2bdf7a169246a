"""The move of a standalone broker's metadata to ZooKeeper, on the side of its log directories.

The broker does not run. Its metadata journal is read. The states of partitions, which a standalone broker's
journal lacks, are added: this broker alone hosts and leads each partition, with its log's last leader epoch.
The result is written to an empty chroot (`logd.metadata.zookeeper.moving`). Then the directories are marked
with the location of the metadata, and a rename of the journal completes the move:

    the chroot is written │ directories are marked │ the journal is renamed │ the chroot is open to brokers
    the journal counts, and the broker may be   │ the chroot counts
    started standalone again                    │

If the command is killed, running it again continues the move. Irregular directories are refused, such as
those with a log that the broker has never seen; a start as a standalone broker repairs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kafka_client.topic_partition import TopicPartition
from logd.broker.log_dirs.journal_directory import journal_directory
from logd.broker.log_dirs.log_dirs import LogDirs
from logd.broker.log_dirs.opening import LogDirsOpening
from logd.metadata.image import ClusterImage, PartitionImage, TopicImage
from logd.metadata.journal_store import FILE_NAME, MOVED_NAME, JournalStore
from logd.metadata.zookeeper import moving
from logd.metadata.zookeeper.moving import Standing
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.znodes.znodes import MoveZnode
from logd.storage import DirectoryLocked, LogDirectory, StorageError
from logd.storage.checkpoints import read_partition_metadata
from logd.storage.disk import Disk, PosixDisk
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.log_directory import METADATA_TOPIC
from logd.storage.names import CLEAN_SHUTDOWN, LEADER_EPOCHS, PARTITION_METADATA, parse_partition_directory

START_ONCE = "start the broker by itself once more, as it was, stop it by SIGTERM, and move it then"


class FoundLog(NamedTuple):
    """The contents of the small files of a log that is not open."""

    directory: Path
    topic_id: bytes | None
    leader_epoch: int


class SingleNode:
    """The log directories of a broker that does not run, locked as a context manager.

    Raises StorageError or DirectoryMismatch for directories that cannot be moved as they are; nothing is
    changed then. `image` has the state of every partition; None if the metadata is in ZooKeeper already, by
    the marks of all directories.
    """

    def __init__(self, paths: tuple[str, ...], node_id: int, *, disk: Disk | None = None) -> None:
        self.node_id = node_id
        self.cluster_id = ""
        self.image: ClusterImage | None = None
        self._dirs = LogDirs(paths)
        self._disk = disk or PosixDisk()
        self._home: LogDirectory | None = None

    def __enter__(self) -> Self:
        try:
            self._lock()
            self._read()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()

    @property
    def move(self) -> MoveZnode:
        """Who is moved."""
        return MoveZnode(self.cluster_id, self.node_id)

    def _lock(self) -> None:
        for path in self._dirs.paths:
            if not path.is_dir():  # it would be made
                raise StorageError(path, "is not there: give the log.dirs of the broker")
        try:
            unusable = LogDirsOpening(self._dirs).lock(
                self._dirs.paths, node_id=self.node_id, disk=self._disk, on_offline=lambda reason: None
            )
        except DirectoryLocked as error:
            raise StorageError(error.directory, f"{error.reason}: stop the broker first") from None
        if unusable:
            raise unusable[0]

    def _unlock(self) -> None:
        for directory in self._dirs:
            directory.unlock()

    def _read(self) -> None:
        directories = self._dirs.directories
        if all(directory.identity.zookeeper is not None for directory in directories) and not _has_journal(
            directories
        ):
            self.cluster_id = directories[0].cluster_id
        else:
            self._home = journal_directory(directories, ())
            if not _has_journal(directories):
                raise StorageError(
                    self._home.path,
                    f"has no {FILE_NAME}: no broker by itself was ever started on it, and there is nothing "
                    "to move. Start it with zookeeper.connect",
                )
            self.cluster_id = self._home.cluster_id
        for directory in directories:
            directory.identity.check(directory.path, node_id=self.node_id, cluster_id=self.cluster_id)
        if self._home is not None:
            self.image = self._complete(self._home)

    def _complete(self, home: LogDirectory) -> ClusterImage:
        for directory in self._dirs:
            if not (directory.path / CLEAN_SHUTDOWN).exists():
                raise StorageError(directory.path, f"was not closed cleanly: {START_ONCE}")
        store = JournalStore(home.path, self._disk)
        try:
            image = store.load()
        except OSError as error:
            raise StorageError(home.path, f"{FILE_NAME} cannot be read: {error}") from error
        finally:
            store.close()
        epochs = self._leader_epochs(image)
        for topic in image.topics.values():
            for index in range(topic.partitions):
                tp = TopicPartition(topic.name, index)
                if tp not in epochs:
                    raise StorageError(home.path, f"{tp} has a log in none of log.dirs: {START_ONCE}")
                image.apply(self._state(epochs[tp]).as_change(tp))
        return image

    def _leader_epochs(self, image: ClusterImage) -> dict[TopicPartition, int]:
        epochs: dict[TopicPartition, int] = {}
        for tp, stored_log in self._logs():
            topic = image.topics.get(tp.topic)
            if topic is None and stored_log.topic_id in image.deleted:
                continue
            _check(tp, stored_log, topic)
            epochs[tp] = max(epochs.get(tp, 0), stored_log.leader_epoch)
        return epochs

    def _logs(self) -> Iterator[tuple[TopicPartition, FoundLog]]:
        for directory in self._dirs:
            for path in sorted(directory.path.iterdir()):
                tp = parse_partition_directory(path.name)
                if tp is not None and tp.topic != METADATA_TOPIC and path.is_dir():
                    topic_id = read_partition_metadata(path / PARTITION_METADATA)
                    yield tp, FoundLog(path, topic_id, LeaderEpochs.read(path / LEADER_EPOCHS).highest)

    def _state(self, leader_epoch: int) -> PartitionImage:
        only = (self.node_id,)
        return PartitionImage(replicas=only, isr=only, leader=self.node_id, leader_epoch=leader_epoch)

    def leave_to(self, zookeeper: str) -> None:
        """Mark all directories with ZooKeeper's address: the broker then starts only there. Raises
        StorageError.
        """
        assert self._home is not None, "it is there already"
        for directory in self._dirs:
            directory.identify(self.cluster_id, zookeeper=zookeeper)
        path = self._home.path
        try:
            self._disk.rename(path / FILE_NAME, path / MOVED_NAME)
            self._disk.sync_folder(path)
        except OSError as error:
            raise StorageError(path, f"{FILE_NAME} cannot be renamed: {error}") from error
        self._home = None

    def is_elsewhere(self) -> StorageError:
        """Return the error for a move to another ZooKeeper than the one that has the metadata."""
        directory = self._dirs.directories[0]
        return StorageError(
            directory.path,
            f"belongs to cluster {self.cluster_id}, whose metadata is in ZooKeeper already, at "
            f"{directory.identity.zookeeper} when it was there last: give that",
        )


def _has_journal(directories: list[LogDirectory]) -> bool:
    return any((directory.path / FILE_NAME).exists() for directory in directories)


def _check(tp: TopicPartition, stored_log: FoundLog, topic: TopicImage | None) -> None:
    if topic is None or tp.partition >= topic.partitions:
        raise StorageError(stored_log.directory, f"the broker has never seen this log: {START_ONCE}")
    if stored_log.topic_id not in (None, topic.topic_id):
        raise StorageError(
            stored_log.directory,
            f"its {PARTITION_METADATA} says another topic id than the broker's topic {tp.topic} has: among "
            f"others the broker would set this log aside. If it is that topic's, delete {PARTITION_METADATA}",
        )


async def look(node: SingleNode, zookeeper: ZooKeeperSettings) -> Standing:
    """Return how far the move has come. Raises ZooKeeperError."""
    session = await Session(zookeeper, patience_s=zookeeper.connection_timeout_s).open()
    try:
        return await moving.standing(session, node.move)
    finally:
        await session.close()


async def move(node: SingleNode, zookeeper: ZooKeeperSettings, wall_clock_ms: Callable[[], int]) -> Standing:
    """Move the metadata, or continue a move. Return its state before. Raises ZooKeeperError, StorageError."""
    session = await Session(zookeeper, patience_s=zookeeper.connection_timeout_s).open()
    try:
        return await move_in(session, node, wall_clock_ms)
    finally:
        await session.close()


async def move_in(session: Session, node: SingleNode, wall_clock_ms: Callable[[], int]) -> Standing:
    """Move as `move`, in an open session."""
    before = await moving.standing(session, node.move)
    if node.image is not None:
        await moving.begin(session, node.move)
        await moving.write(session, node.move, node.image, wall_clock_ms)
        node.leave_to(session.settings.connect)
    elif before is Standing.EMPTY:
        raise node.is_elsewhere()
    await moving.end(session)
    return before
