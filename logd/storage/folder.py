"""One log folder, an entry of `log.dirs`: its lock, its identity, its checkpoints, and the logs in it."""

from __future__ import annotations

import logging
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from logd.config.topic import TopicConfig
from logd.errors import CorruptRecordBatch, KafkaError
from logd.storage.checkpoints import (
    PartitionKey,
    decode_uuid,
    encode_offsets,
    encode_properties,
    encode_uuid,
    read_offsets,
    read_properties,
)
from logd.storage.disk import Disk, PosixDisk, write_atomically
from logd.storage.errors import FolderMismatch, StorageError
from logd.storage.health import Health
from logd.storage.jobs import Deletion
from logd.storage.lock import FolderLock
from logd.storage.log.flusher import write_id
from logd.storage.log.loader import Opening, open_log
from logd.storage.log.log import Log
from logd.storage.names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    DELETED_FOLDER_SUFFIX,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    deleted_folder,
    parse_future_folder,
    parse_partition_folder,
    partition_folder,
    stray_folder,
)
from logd.storage.read_ahead import read_ahead

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
CLOSED_AT_ONCE = 8
"""Logs closed at a time."""
METADATA_TOPIC = "__cluster_metadata"
"""A Java controller's own log; it is no partition of ours."""


class LogFolder:
    """Open with `LogFolder.open`, end with `close`. One owner calls everything.

    `high_watermarks` and `cleaner_offsets` are those of the last checkpoint; `deletions` are leftovers found
    at start, to be run in a thread; `start_offsets` those of the checkpoint; `futures` are the folders found
    that logs of other folders were being moved into (`future`). `arriving` are logs on their way here now.
    """

    def __init__(
        self, path: Path, lock: FolderLock, disk: Disk, on_offline: Callable[[str], None] | None
    ) -> None:
        self.path = path
        self.node_id = -1
        self.cluster_id = ""
        self.directory_id = bytes(16)
        self.logs: dict[PartitionKey, Log] = {}
        self.high_watermarks: dict[PartitionKey, int] = {}
        self.cleaner_offsets: dict[PartitionKey, int] = {}
        self.deletions: list[Deletion] = []
        self.futures: dict[PartitionKey, list[Path]] = {}
        self.arriving: dict[PartitionKey, Log] = {}
        self.start_offsets: dict[PartitionKey, int] = {}
        self._lock = lock
        self._disk = disk
        self._health = Health(path, on_offline)
        self._written: dict[str, bytes] = {}
        self._checkpointed: set[PartitionKey] = set()
        self._checkpoint_number = self._checkpoint_written = 0
        self._checkpointing = threading.Lock()

    @property
    def failure(self) -> str | None:
        """Why the folder is offline; None while it serves."""
        return self._health.failure

    @property
    def partition_count(self) -> int:
        """How many logs are here or on their way."""
        return len(self.logs) + len(self.arriving)

    @property
    def disk(self) -> Disk:
        """What its logs are written through."""
        return self._disk

    @property
    def health(self) -> Health:
        """What its logs share."""
        return self._health

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        node_id: int,
        cluster_id: str | None,
        config_for: Callable[[str], TopicConfig],
        now_ms: int,
        on_offline: Callable[[str], None] | None = None,
        disk: Disk | None = None,
    ) -> LogFolder:
        """Lock the folder, made if missing, and open every log in it, with recovery after an unclean stop.

        `cluster_id` None takes the one in `meta.properties`, or makes one up. `config_for` gives a topic's
        settings. `on_offline` is called once with the reason, from whichever thread met the disk error.
        Blocks. Raises FolderLocked, FolderMismatch, StorageError.
        """
        disk = disk or PosixDisk()
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder = cls(path, FolderLock(path), disk, on_offline)
        except OSError as error:
            raise StorageError(path, f"cannot be used: {error.strerror}") from error
        try:
            folder._identify(node_id, cluster_id)
            folder._open_logs(config_for, now_ms)
        except (OSError, CorruptRecordBatch) as error:
            folder._lock.release()
            raise StorageError(path, f"cannot be opened: {error}") from error
        except BaseException:
            folder._lock.release()
            raise
        return folder

    def create_log(
        self, topic: str, partition: int, *, topic_id: bytes | None, config: TopicConfig, now_ms: int
    ) -> Log:
        """A new, empty log. Raises KafkaError(KAFKA_STORAGE_ERROR).

        Nothing is forced to the disk: whoever keeps the topics creates the log again if a power loss took it.
        """
        if self._health.failure is not None:
            raise self._health.error()
        key = (topic, partition)
        assert key not in self.logs, f"{topic}-{partition} exists"
        folder = self.path / partition_folder(topic, partition)
        try:
            if key in self._checkpointed:
                # A deleted log of this name: its recovery point must not be taken for the new one's.
                self.start_checkpoint()()
            folder.mkdir()
            if topic_id is not None:
                # Before anything else: a log whose folder does not say so was not made by us.
                write_id(self._disk, folder, topic_id)
            opening = Opening(clean=True, recovery_point=0, log_start_offset=-1)
            log, _ = open_log(
                folder, topic, partition, config, opening, disk=self._disk, health=self._health, now_ms=now_ms
            )
            log.is_id_unsynced = topic_id is not None
        except OSError as error:
            if not isinstance(error, FileExistsError):
                shutil.rmtree(folder, ignore_errors=True)  # it may be created in another folder now
            raise self._health.fail(f"creating {folder.name}", error) from error
        self.logs[key] = log
        return log

    def delete_log(self, topic: str, partition: int) -> Deletion:
        """Take a log out: its folder is renamed away; run the deletion (in a thread) after its delay.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        deletion = self.start_delete(topic, partition)
        deletion.hide()
        return deletion

    def start_delete(self, topic: str, partition: int) -> Deletion:
        """As `delete_log`, but its folder is still there until the deletion's `hide` is run (in a thread).

        No log of that name can be created before. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        log = self.logs.pop((topic, partition))
        log.retire()
        renames = [(log.folder, self.path / deleted_folder(topic, partition))]
        delay_ms = log.config.file_delete_delay_ms
        return Deletion(self._disk, [], delay_ms, renames=renames, health=self._health)

    def set_aside(self, topic: str, partition: int) -> Path:
        """Take out a log that has no place here and nobody may delete unasked; where it is now.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        log = self.logs.pop((topic, partition))
        log.retire()
        target = self.path / stray_folder(topic, partition)
        try:
            self._disk.rename(log.folder, target)
        except OSError as error:
            raise self._health.fail(f"setting {log.folder.name} aside", error) from error
        return target

    def start_checkpoint(
        self, high_watermarks: Mapping[PartitionKey, int] | None = None
    ) -> Callable[[], None]:
        """A job that writes recovery points, log start offsets and high watermarks (if given) as of now.

        Run it in any thread: it does nothing if a later checkpoint has been written before it.
        It raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        logs = {**self.logs, **self.arriving}.items()
        self._checkpointed = set(self.logs) | set(self.arriving)
        self._checkpoint_number += 1
        number = self._checkpoint_number
        files: dict[str, Mapping[PartitionKey, int]] = {
            RECOVERY_POINTS: {key: log.recovery_point for key, log in logs},
            LOG_START_OFFSETS: {key: log.log_start_offset for key, log in logs},
        }
        if high_watermarks is not None:
            files[HIGH_WATERMARKS] = high_watermarks
        return lambda: self._write_checkpoints(number, files)

    def sync(self) -> None:
        """Have the names of the logs on the disk. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        if self._health.failure is not None:
            raise self._health.error()
        try:
            self._disk.sync_folder(self.path)
        except OSError as error:
            raise self._health.fail("keeping names", error) from error

    def cleaner_checkpoint(self, first_dirty: Mapping[PartitionKey, int]) -> Callable[[], None]:
        """A job that writes up to where logs are compacted; one at a time.

        It raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        data = encode_offsets(first_dirty)
        return lambda: self._write(CLEANER_OFFSETS, data)

    def close(self, high_watermarks: Mapping[PartitionKey, int] | None = None) -> None:
        """Flush, take producer snapshots, write checkpoints and the clean-shutdown marker, unlock. Blocks.

        An offline folder is only unlocked: the next start recovers it.
        """
        try:
            self._close_logs()
            self.start_checkpoint(high_watermarks)()
            self._write(CLEAN_SHUTDOWN, CLEAN_SHUTDOWN_CONTENT)
        except KafkaError as error:
            logger.error("log folder %s is not closed cleanly, its next start recovers: %s", self.path, error)
            for log in self.logs.values():
                log.release()
        finally:
            self._lock.release()

    def _identify(self, node_id: int, cluster_id: str | None) -> None:
        """Read `meta.properties`, or write it into a new folder."""
        path = self.path / META_PROPERTIES
        properties = read_properties(path)
        known_node = properties.get("node.id", properties.get("broker.id"))
        known_cluster = properties.get("cluster.id")
        if properties.get("version", "1") not in ("0", "1"):
            raise FolderMismatch(
                self.path, f"meta.properties has version {properties['version']}, not 0 or 1"
            )
        if known_node is not None and known_node != str(node_id):
            raise FolderMismatch(self.path, f"belongs to node {known_node}, not to node {node_id}")
        if known_cluster is not None and cluster_id is not None and known_cluster != cluster_id:
            raise FolderMismatch(
                self.path, f"belongs to cluster {known_cluster}, not to cluster {cluster_id}"
            )
        self.node_id = node_id
        self.cluster_id = known_cluster or cluster_id or encode_uuid(uuid.uuid4().bytes)
        known_directory = properties.get("directory.id")
        self.directory_id = decode_uuid(known_directory) if known_directory else uuid.uuid4().bytes
        wanted = {
            "version": "1",
            "cluster.id": self.cluster_id,
            "node.id": str(node_id),
            "directory.id": encode_uuid(self.directory_id),
        }
        if properties != wanted:
            write_atomically(self._disk, path, encode_properties(wanted))

    def _open_logs(self, config_for: Callable[[str], TopicConfig], now_ms: int) -> None:
        marker = self.path / CLEAN_SHUTDOWN
        clean = marker.exists()
        if clean:
            # It must not come back with a power loss, or what is written from now on would be trusted.
            self._disk.unlink(marker)
            self._disk.sync_folder(self.path)
        recovery_points = read_offsets(self.path / RECOVERY_POINTS)
        self._checkpointed = set(recovery_points)
        self._written[RECOVERY_POINTS] = encode_offsets(recovery_points)
        start_offsets = self.start_offsets = read_offsets(self.path / LOG_START_OFFSETS)
        self.high_watermarks = read_offsets(self.path / HIGH_WATERMARKS)
        self.cleaner_offsets = read_offsets(self.path / CLEANER_OFFSETS)
        leftovers: list[Path] = []
        for entry in read_ahead(sorted(path for path in self.path.iterdir() if path.is_dir())):
            key = parse_partition_folder(entry.name)
            if entry.name.endswith(DELETED_FOLDER_SUFFIX):
                leftovers.append(entry)
            elif (moved := parse_future_folder(entry.name)) is not None:
                self.futures.setdefault(moved, []).append(entry)
            if key is None or key[0] == METADATA_TOPIC:
                continue
            opening = Opening(
                clean=clean,
                recovery_point=recovery_points.get(key, -1),
                log_start_offset=start_offsets.get(key, -1),
            )
            log, strays = open_log(
                entry, *key, config_for(key[0]), opening, disk=self._disk, health=self._health, now_ms=now_ms
            )
            if log.needs_flush(now_ms):
                # A killed broker left it to the kernel's cache. It is going to be read and acted on.
                log.sync()
            self.logs[key] = log
            leftovers += strays
        if leftovers:
            self.deletions.append(Deletion(self._disk, leftovers))

    def _close_logs(self) -> None:
        """Many at a time if there are many: the file system forces their files to the disk together then."""
        logs = list(self.logs.values())
        if len(logs) <= CLOSED_AT_ONCE:
            for log in logs:
                log.close()
            return
        with ThreadPoolExecutor(CLOSED_AT_ONCE, thread_name_prefix="closing") as pool:
            for _ in pool.map(Log.close, logs):
                pass

    def _write_checkpoints(self, number: int, files: Mapping[str, Mapping[PartitionKey, int]]) -> None:
        with self._checkpointing:
            if number < self._checkpoint_written:
                return
            self._checkpoint_written = number
            for name, offsets in files.items():
                data = encode_offsets(offsets)
                if self._written.get(name) != data:
                    self._write(name, data)
                    self._written[name] = data

    def _write(self, name: str, data: bytes) -> None:
        if self._health.failure is not None:
            raise self._health.error()
        try:
            write_atomically(self._disk, self.path / name, data)
        except OSError as error:
            raise self._health.fail(f"writing {name}", error) from error
