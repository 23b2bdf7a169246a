"""A log directory, an entry of `log.dirs`: its lock, its identity, its checkpoints, and its logs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_client.errors import CorruptRecordBatch, KafkaError
from kafka_client.private_files import DIRECTORY_MODE
from kafka_client.topic_partition import TopicPartition
from logd.storage.checkpoints import (
    encode_offsets,
    encode_uuid,
    new_uuid,
    read_offsets,
)
from logd.storage.disk import PosixDisk, remove_folder, write_atomically
from logd.storage.errors import StorageError
from logd.storage.health import Health
from logd.storage.identity import DirectoryIdentity
from logd.storage.jobs import Deletion
from logd.storage.lock import DirectoryLock
from logd.storage.names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    DELETED_DIRECTORY_SUFFIX,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    deleted_directory,
    parse_future_directory,
    parse_partition_directory,
    partition_directory,
    stray_directory,
)
from logd.storage.read_ahead import read_ahead
from logd.storage.recovery_epoch import RecoveryEpoch

if TYPE_CHECKING:
    from logd.config.topic import TopicConfig
    from logd.storage.disk import Disk
    from logd.storage.log.log import Log

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
CLOSED_AT_ONCE = 8
"""Logs that are closed at one time."""
METADATA_TOPIC = "__cluster_metadata"
"""The log of a Java controller, which is not one of our partitions."""


class LogDirectory:
    """A log directory: open it with `LogDirectory.open`, end with `close`. One owner makes all calls.

    `high_watermarks`, `cleaner_offsets` and `start_offsets` are those of the last checkpoint. `deletions` are
    leftovers from before the start, to be run in a thread. `futures` are directories in it for logs that were
    being moved here from other directories (`future`). `arriving` are logs that are being moved here now.
    """

    def __init__(
        self,
        path: Path,
        lock: DirectoryLock,
        disk: Disk,
        on_offline: Callable[[str], None] | None,
        identity: DirectoryIdentity,
    ) -> None:
        self.path = path
        self.identity = identity
        self.directory_id = identity.directory_id or new_uuid()
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        self.deletions: list[Deletion] = []
        self.futures: dict[TopicPartition, list[Path]] = {}
        self.arriving: dict[TopicPartition, Log] = {}
        self.start_offsets: dict[TopicPartition, int] = {}
        self._recovery_epoch = RecoveryEpoch(disk, path)
        self._lock = lock
        self._disk = disk
        self._health = Health(path, on_offline)
        self._written: dict[str, bytes] = {}
        self._checkpointed: set[TopicPartition] = set()
        self._checkpoint_number = 0
        self._checkpoints_written: dict[str, int] = {}
        """The number of the checkpoint that each file was last written by."""
        self._checkpointing = threading.Lock()
        self._is_open = False

    @property
    def node_id(self) -> int:
        """The id of the directory's node; -1 if it is not known yet."""
        return -1 if self.identity.node_id is None else self.identity.node_id

    @property
    def cluster_id(self) -> str:
        """The id of the directory's cluster; empty for a new directory before `identify`."""
        return self.identity.cluster_id or ""

    @property
    def failure(self) -> str | None:
        """The reason why the directory is offline; None while it serves."""
        return self._health.failure

    @property
    def partition_count(self) -> int:
        """The number of logs here, or being moved here."""
        return len(self.logs) + len(self.arriving)

    @property
    def disk(self) -> Disk:
        """The `Disk` that its logs are written through."""
        return self._disk

    @property
    def health(self) -> Health:
        """The `Health` that its logs share."""
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
        is_replicated: bool = False,
    ) -> LogDirectory:
        """Lock the directory, create it if missing, and open every log in it, with recovery after an unclean
        stop.

        `cluster_id` None uses the one in `meta.properties`, or creates one. `config_for` returns a topic's
        settings. `on_offline` is called once with the reason, in any thread, after a disk error. Blocks.
        Raises DirectoryLocked, DirectoryMismatch and StorageError.
        """
        directory = cls.lock(path, node_id=node_id, on_offline=on_offline, disk=disk)
        try:
            directory.identify(cluster_id)
        except BaseException:
            directory.unlock()
            raise
        directory.open_logs(config_for, now_ms, is_replicated=is_replicated)
        return directory

    @classmethod
    def lock(
        cls,
        path: Path,
        *,
        node_id: int,
        on_offline: Callable[[str], None] | None = None,
        disk: Disk | None = None,
    ) -> LogDirectory:
        """Lock the directory, create it if missing, and read its identity; call `identify` next, then
        `open_logs`.

        Raises DirectoryLocked, DirectoryMismatch and StorageError.
        """
        try:
            path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            lock = DirectoryLock(path)
        except OSError as error:
            raise StorageError(path, f"cannot be used: {error.strerror}") from error
        try:
            identity = DirectoryIdentity.read(path)
            identity.check(path, node_id=node_id, cluster_id=None)
        except OSError as error:
            lock.release()
            raise StorageError(path, f"cannot be opened: {error}") from error
        except BaseException:
            lock.release()
            raise
        return cls(path, lock, disk or PosixDisk(), on_offline, identity._replace(node_id=node_id))

    def identify(
        self, cluster_id: str | None, *, journal_id: bytes | None = None, zookeeper: str | None = None
    ) -> None:
        """Write the directory's identity: its cluster, and where the cluster's metadata is.

        The metadata is in the directory `journal_id`, or in ZooKeeper at `zookeeper` (`zookeeper.connect`).
        Without a `cluster_id` the known one is used, or one is created. Blocks. Raises DirectoryMismatch and
        StorageError.
        """
        before = self.identity
        self.identity = before.completed(
            node_id=self.node_id,
            cluster_id=cluster_id or before.cluster_id or encode_uuid(new_uuid()),
            directory_id=self.directory_id,
            journal_id=journal_id,
            zookeeper=zookeeper,
        )
        before.check(self.path, node_id=self.node_id, cluster_id=self.cluster_id)
        try:
            self.identity.write(self.path, self._disk)
        except OSError as error:
            raise StorageError(self.path, f"cannot be opened: {error}") from error

    def open_logs(
        self, config_for: Callable[[str], TopicConfig], now_ms: int, *, is_replicated: bool = False
    ) -> None:
        """Open every log in the directory, with recovery after an unclean stop; call `identify` before.

        Logs that may have lost records start a new leader epoch, unless `is_replicated`. Then the controller
        decides about leader epochs, and an epoch started here would hide that the leader's goes on. Blocks.
        Raises StorageError; the directory is unlocked then.
        """
        try:
            losers = self._open_logs(config_for, now_ms)
            if losers and not is_replicated:
                self._recovery_epoch.begin(losers)
        except (OSError, CorruptRecordBatch) as error:
            self._lock.release()
            raise StorageError(self.path, f"cannot be opened: {error}") from error
        except BaseException:
            self._lock.release()
            raise
        self._is_open = True

    def unlock(self) -> None:
        """Release the lock and leave everything as it is, if the logs were not opened."""
        self._lock.release()

    def create_log(
        self, topic: str, partition: int, *, topic_id: bytes | None, config: TopicConfig, now_ms: int
    ) -> Log:
        """Create a new, empty log at once. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR).

        This is for the start, before requests are served: later the event loop calls `new_log`, and a thread
        creates its files. Nothing is synced: the broker's metadata creates the log again if a power loss
        removed it. The job of `start_forgetting` is run here if necessary.
        """
        if self._health.failure is not None:
            raise self._health.error()
        if (job := self.start_forgetting([TopicPartition(topic, partition)])) is not None:
            job()
        if (self.path / partition_directory(topic, partition)).exists():
            error = FileExistsError("its folder exists already")
            raise self._health.fail(f"creating {topic}-{partition}", error) from error
        log = self.new_log(topic, partition, topic_id=topic_id, config=config, now_ms=now_ms)
        try:
            self.placing([log])()
        except KafkaError:
            del self.logs[log.tp]
            remove_folder(log.directory, ignore_errors=True)  # the caller tries the next directory
            raise
        return log

    def new_log(
        self, topic: str, partition: int, *, topic_id: bytes | None, config: TopicConfig, now_ms: int
    ) -> Log:
        """Return a new, empty log. It is only in memory until `placing` or its first record writes it to the
        disk.

        Call `start_forgetting` before. Raises KafkaError(KAFKA_STORAGE_ERROR) if the directory has failed.
        """
        if self._health.failure is not None:
            raise self._health.error()
        assert (topic, partition) not in self.logs, f"{topic}-{partition} exists"
        from logd.storage.log.loader import new_log  # a broker without logs starts without this module

        directory = self.path / partition_directory(topic, partition)
        disk, health = self._disk, self._health
        log = new_log(
            directory, topic, partition, config, topic_id=topic_id, disk=disk, health=health, now_ms=now_ms
        )
        self.logs[log.tp] = log
        return log

    def start_forgetting(self, keys: Iterable[TopicPartition]) -> Callable[[], None] | None:
        """Return a job to run before logs of these names are created; None if there is nothing to do.

        The checkpoint may contain deleted logs of these names, whose recovery points must not be used for the
        new logs. The job blocks, and raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._checkpointed.isdisjoint(keys):
            return None
        return self.start_checkpoint()

    def placing(self, logs: Sequence[Log]) -> Callable[[], None]:
        """Return a job that creates the files of new logs. It raises KafkaError(KAFKA_STORAGE_ERROR) if one
        fails.
        """
        return lambda: self._place(logs)

    def _place(self, logs: Sequence[Log]) -> None:
        for log in logs:
            if self._health.failure is not None:
                raise self._health.error()
            try:
                log.place()
            except OSError as error:
                raise self._health.fail(f"creating {log.directory.name}", error) from error

    @property
    def announced_epoch(self) -> int:
        """The largest leader epoch that logs of this directory started after an unclean stop, as of the last
        start.
        """
        return self._recovery_epoch.announced

    def begin_epoch(self, logs: Iterable[Log], *, above: int = 0) -> None:
        """Have logs that may have lost records start an unused leader epoch, larger than `above`.

        Call it before they serve. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        try:
            self._recovery_epoch.begin(logs, above=above)
        except OSError as error:
            raise self._health.fail("beginning a leader epoch", error) from error

    def delete_log(self, topic: str, partition: int) -> Deletion:
        """Remove a log and rename its directory away; run the returned deletion (in a thread) after its
        delay.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        deletion = self.start_delete(topic, partition)
        deletion.hide()
        return deletion

    def start_delete(self, topic: str, partition: int) -> Deletion:
        """Remove a log, but leave its directory in place until the deletion's `hide` is run (in a thread).

        Before that no log of the same name can be created. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        delay_ms = self.logs[TopicPartition(topic, partition)].config.file_delete_delay_ms
        return self.deletion([self.take_out(topic, partition)], delay_ms)

    def take_out(self, topic: str, partition: int) -> tuple[Path, Path]:
        """Remove a log; return the current path of its directory and the one to rename it to.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        log = self.logs.pop(TopicPartition(topic, partition))
        log.retire()
        return log.directory, self.path / deleted_directory(topic, partition)

    def deletion(self, taken_out: Sequence[tuple[Path, Path]], delay_ms: int) -> Deletion:
        """Return the deletion of removed logs; their directories stay until its `hide` is run."""
        return Deletion(self._disk, [], delay_ms, renames=taken_out, health=self._health)

    def set_aside(self, topic: str, partition: int) -> Path:
        """Remove a log that does not belong here but must not be deleted unasked; return its new path.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        log = self.logs.pop(TopicPartition(topic, partition))
        log.retire()
        target = self.path / stray_directory(topic, partition)
        try:
            self._disk.rename(log.directory, target)
        except OSError as error:
            raise self._health.fail(f"setting {log.directory.name} aside", error) from error
        return target

    def start_checkpoint(
        self, high_watermarks: Mapping[TopicPartition, int] | None = None
    ) -> Callable[[], None]:
        """Return a job that writes the current recovery points, log start offsets and high watermarks.

        `high_watermarks` may contain logs of other directories; without it the last ones are kept. Run the
        job in any thread: it does nothing if a later checkpoint has already been written. It raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        logs = {**self.logs, **self.arriving}
        self._checkpointed = set(logs)
        return self._checkpoint(
            {
                RECOVERY_POINTS: {key: log.recovery_point for key, log in logs.items()},
                LOG_START_OFFSETS: {key: log.log_start_offset for key, log in logs.items()},
                HIGH_WATERMARKS: self._high_watermarks_of(logs, high_watermarks),
            }
        )

    def high_watermark_checkpoint(self, high_watermarks: Mapping[TopicPartition, int]) -> Callable[[], None]:
        """Return a job as `start_checkpoint` does, for the high watermarks only."""
        self._checkpointed.update(self.logs)
        return self._checkpoint({HIGH_WATERMARKS: self._high_watermarks_of(self.logs, high_watermarks)})

    def _high_watermarks_of(
        self, logs: Mapping[TopicPartition, Log], now: Mapping[TopicPartition, int] | None
    ) -> Mapping[TopicPartition, int]:
        offsets = self.high_watermarks if now is None else now
        self.high_watermarks = {key: offsets[key] for key in logs if key in offsets}
        return self.high_watermarks

    def _checkpoint(self, files: Mapping[str, Mapping[TopicPartition, int]]) -> Callable[[], None]:
        self._checkpoint_number += 1
        number = self._checkpoint_number
        return lambda: self._write_checkpoints(number, files)

    def sync(self) -> None:
        """Sync the names of the logs to the disk. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        if self._health.failure is not None:
            raise self._health.error()
        try:
            self._disk.sync_folder(self.path)
        except OSError as error:
            raise self._health.fail("keeping names", error) from error

    def cleaner_checkpoint(self, first_dirty: Mapping[TopicPartition, int]) -> Callable[[], None]:
        """Return a job that writes the offsets up to which logs are compacted; run one job at a time.

        It raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        data = encode_offsets(first_dirty)
        return lambda: self._write(CLEANER_OFFSETS, data)

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Flush logs, take producer snapshots, write checkpoints and the clean-shutdown marker, and unlock.
        Blocks.

        A directory that is offline, or whose logs were not opened, is only unlocked: the next start recovers
        it.
        """
        if not self._is_open:
            return self._lock.release()
        try:
            self._close_logs()
            self.start_checkpoint(high_watermarks)()
            self._write(CLEAN_SHUTDOWN, CLEAN_SHUTDOWN_CONTENT)
        except KafkaError as error:
            logger.error(
                "log directory %s is not closed cleanly, its next start recovers: %s", self.path, error
            )
            for log in self.logs.values():
                log.release()
        finally:
            self._lock.release()

    def _open_logs(self, config_for: Callable[[str], TopicConfig], now_ms: int) -> list[Log]:
        """Open the logs; return those that may have lost records."""
        marker = self.path / CLEAN_SHUTDOWN
        clean = marker.exists()
        if clean:
            # Synced, since a marker that a power loss brought back would vouch for all later writes.
            self._disk.unlink(marker)
            self._disk.sync_folder(self.path)
        recovery_points = read_offsets(self.path / RECOVERY_POINTS)
        self._checkpointed = set(recovery_points)
        self._written[RECOVERY_POINTS] = encode_offsets(recovery_points)
        start_offsets = self.start_offsets = read_offsets(self.path / LOG_START_OFFSETS)
        self.high_watermarks = read_offsets(self.path / HIGH_WATERMARKS)
        self.cleaner_offsets = read_offsets(self.path / CLEANER_OFFSETS)
        leftovers: list[Path] = []
        losers: list[Log] = []
        for entry in read_ahead(sorted(path for path in self.path.iterdir() if path.is_dir())):
            key = parse_partition_directory(entry.name)
            if entry.name.endswith(DELETED_DIRECTORY_SUFFIX):
                leftovers.append(entry)
            elif (moved := parse_future_directory(entry.name)) is not None:
                self.futures.setdefault(moved, []).append(entry)
            if key is None or key.topic == METADATA_TOPIC:
                continue
            from logd.storage.log.loader import Opening, open_log  # see `new_log`

            cleaner_offset = self.cleaner_offsets.get(key, -1)
            opening = Opening(
                clean=clean,
                recovery_point=recovery_points.get(key, -1),
                log_start_offset=start_offsets.get(key, -1),
                compacted_to=cleaner_offset,
                cleaner_offset=cleaner_offset,
            )
            log, strays, has_lost = open_log(
                entry,
                key.topic,
                key.partition,
                config_for(key.topic),
                opening,
                disk=self._disk,
                health=self._health,
                now_ms=now_ms,
            )
            if has_lost:
                losers.append(log)
            if log.flusher.needs_flush(now_ms):
                # A killed broker left records in the kernel's cache only, which will now be served.
                log.flusher.sync()
            self.logs[log.tp] = log
            leftovers += strays
        if leftovers:
            self.deletions.append(Deletion(self._disk, leftovers))
        return losers

    def _close_logs(self) -> None:
        """Close the logs, in parallel if there are many: the file system then syncs their files together."""
        logs = list(self.logs.values())
        if len(logs) <= CLOSED_AT_ONCE:
            for log in logs:
                log.close()
            return
        with ThreadPoolExecutor(CLOSED_AT_ONCE, thread_name_prefix="closing") as pool:
            for _ in pool.map(lambda log: log.close(), logs):
                pass

    def _write_checkpoints(self, number: int, files: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        with self._checkpointing:
            for name, offsets in files.items():
                if number < self._checkpoints_written.get(name, 0):
                    continue
                self._checkpoints_written[name] = number
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
