"""The move of a log to another log directory: its files are copied while it serves, then it continues there.

    <log directory>/<topic>-<partition>.<unique>-future/     Kafka's name; it contains a log's usual files

The copies are identical, so the log's state in memory (offsets, producers, epochs) stays valid: only its path
changes. Segments and indexes grow at their end. A file that was replaced (by compaction) or shrank is copied
again, and a removed one is removed. The move takes rounds, each shorter than the one before:

    begin_round      owner    lists the files copy … copy      thread   some bytes each, until all are copied
    sync             thread   syncs the copies to the disk; only before `finish` finish           owner    the
    last few bytes, then two renames: the old directory away, the new one in place

A crash leaves the old directory; the copy is then removed, and the move starts again. A crash between the two
renames leaves only a copy that is whole and synced, which `promote` puts in place. So no flushed record is
lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_client.private_files import DIRECTORY_MODE
from kafka_client.topic_partition import TopicPartition
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage.checkpoints import encode_partition_metadata
from logd.storage.disk import File, write_atomically
from logd.storage.errors import NoRoom
from logd.storage.health import NO_ROOM, remedy
from logd.storage.jobs import Deletion
from logd.storage.log.loader import Opening, open_log
from logd.storage.log.log import Log
from logd.storage.log_directory import LogDirectory
from logd.storage.names import (
    LEADER_EPOCHS,
    LOG_SUFFIX,
    PARTITION_METADATA,
    REMOVAL_OFFSET,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    deleted_directory,
    future_directory,
    offset_name,
    parse_offset,
    partition_directory,
)
from logd.storage.segment import Segment

CHUNK_BYTES = 1024 * 1024
"""Bytes that are read and written at one time."""
LAST_BYTES_MAX = 1024 * 1024
"""Most bytes that the owner itself copies at the end, while nothing is appended."""

_OF_A_LOG = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)")


class Copied(NamedTuple):
    """A file's state when it was copied: inode, copied bytes, and time of modification."""

    inode: int
    size: int
    modified_ns: int


class FutureLog:
    """The move of one log from `source` to `target`. The module's docstring says who makes which calls.

    `size` bytes of segments are copied, up to about `end_offset`. `is_done` is True once the log is in its
    new directory.
    """

    def __init__(self, log: Log, source: LogDirectory, target: LogDirectory) -> None:
        """Prepare the move. Raises ValueError if the topic's name is too long for the directory's name."""
        self.log = log
        self.source = source
        self.target = target
        self.path = target.path / future_directory(log.topic, log.partition)
        self.size = 0
        self.end_offset = 0
        self.is_done = False
        self._from = log.directory
        self._copied: dict[str, Copied] = {}
        self._unsynced: set[str] = set()
        self._files: Iterator[int] = iter(())
        self._row: Sequence[Segment] = ()
        self._unsaved_from = 0
        self._round_end = 0
        self._synced_end = -1
        self._epochs = b""
        self._removals = b""

    # In any thread

    def create(self) -> None:
        """Create the target directory; the move then survives a crash. Raises KafkaError and NoRoom."""
        try:
            self.log.place()
        except OSError as error:
            raise self.source.health.fail(f"creating {self.log.directory.name}", error) from error
        try:
            self.path.mkdir(DIRECTORY_MODE)
            if self.log.topic_id is not None:
                data = encode_partition_metadata(self.log.topic_id)
                write_atomically(self.target.disk, self.path / PARTITION_METADATA, data)
            self.target.disk.sync_folder(self.target.path)
        except OSError as error:
            raise self._target_failed(error) from error

    def copy(self, bytes_max: int) -> tuple[int, bool]:
        """Copy about `bytes_max` bytes; return how many were copied, and True if the round is complete.

        Raises FileNotFoundError if the log was deleted, KafkaError and NoRoom.
        """
        copied = 0
        for size in self._files:
            copied += size
            if copied >= bytes_max:
                return copied, False
        self.end_offset = self._round_end
        return copied, True

    def sync(self) -> None:
        """Sync the round's bytes to the disk. Raises KafkaError and NoRoom."""
        disk = self.target.disk
        try:
            for name in sorted(self._unsynced):
                file = disk.open(self.path / name)
                file.sync()
                file.close()
            write_atomically(disk, self.path / LEADER_EPOCHS, self._epochs)
            if self._removals:
                write_atomically(disk, self.path / REMOVAL_OFFSET, self._removals)
            disk.sync_folder(self.path)
        except OSError as error:
            raise self._target_failed(error) from error
        self._unsynced.clear()
        self._synced_end = self._round_end

    def _round(self) -> Iterator[int]:
        first = offset_name(self._row[0].base_offset, "")  # files before it are being deleted
        names = {name for name in os.listdir(self._from) if _OF_A_LOG.fullmatch(name) and name >= first}
        for name in sorted(self._copied.keys() - names):
            self._drop(name)
        for name in sorted(names):
            if (base := parse_offset(name, LOG_SUFFIX)) is not None:
                self.end_offset = max(self.end_offset, base)
            yield from self._catch_up(name)

    def _catch_up(self, name: str) -> Iterator[int]:
        """Copy the part of a file that its copy lacks; yield the bytes of each chunk."""
        try:
            status = (self._from / name).stat()
            now = Copied(status.st_ino, status.st_size, status.st_mtime_ns)
            done = self._copied.get(name)
            if done is not None and (done == now or (done[:2] == now[:2] and name.endswith(LOG_SUFFIX))):
                return
            source = self.source.disk.open(self._from / name, create=False)
        except FileNotFoundError:
            return  # dropped by the next round
        except OSError as error:
            raise self.source.health.fail(f"reading {name} to move it", error) from error
        position = done.size if done is not None and done.inode == now.inode and done.size < now.size else 0
        if position == 0:
            self._drop(name)
        try:
            target = self.target.disk.open(self.path / name)
            while position < now.size and (data := self._read(source, position, now.size)):
                target.write(position, [data])
                position += len(data)
                self.size += len(data) if name.endswith(LOG_SUFFIX) else 0
                yield len(data)
            target.close()
        except OSError as error:
            raise self._target_failed(error) from error
        source.close()
        self._copied[name] = now._replace(size=position)
        self._unsynced.add(name)

    def _read(self, source: File, position: int, end: int) -> bytes:
        try:
            return source.read(position, min(CHUNK_BYTES, end - position))
        except OSError as error:
            raise self.source.health.fail(f"reading {self._from.name} to move it", error) from error

    def _drop(self, name: str) -> None:
        done = self._copied.pop(name, None)
        if done is not None and name.endswith(LOG_SUFFIX):
            self.size -= done.size
        self._unsynced.discard(name)
        try:
            self.target.disk.unlink(self.path / name)
        except OSError as error:
            raise self._target_failed(error) from error

    def _target_failed(self, error: OSError) -> Exception:
        """Return the error to raise: NoRoom for a full disk, which only ends the move.

        Any other failure takes the target directory offline.
        """
        if error.errno in NO_ROOM:
            return NoRoom(f"{self._from.name} is not moved to {self.target.path}: {error}; {remedy(error)}")
        return self.target.health.fail(f"writing {self.path.name}", error)

    # By the owner

    def begin_round(self) -> None:
        """List what is to be copied; call `copy` next."""
        log = self.log
        self._row = log.files.segments
        self._unsaved_from = log.files.unsaved_from
        self._round_end = log.log_end_offset
        self._epochs = log.epochs.encode()
        self._removals = log.removals.encode() if log.removals.is_known else b""
        self._files = self._round()

    def finish(self) -> Deletion | None:
        """Copy the rest and continue the log in its new directory; return None if too much is missing:
        another round.

        The target's checkpoint must have been written since `begin_round`, with the log in `arriving`. Sync
        both directories next, then run the deletion of the old files. Raises KafkaError and NoRoom.
        """
        if not self.is_near or not self._is_flushed_there():
            return None
        for name in self._changing_names():
            for _ in self._catch_up(name):
                pass
        assert all(self._copied_of(segment) == segment.size for segment in self.log.files.segments)
        return self._swap()

    @property
    def is_near(self) -> bool:
        """True if only the last bytes are missing, and no older file was removed or replaced meanwhile."""
        row = self.log.files.segments
        missing = sum(segment.size - self._copied_of(segment) for segment in row[self._unsaved_from :])
        return row[: len(self._row)] == self._row and missing <= LAST_BYTES_MAX

    def _copied_of(self, segment: Segment) -> int:
        done = self._copied.get(offset_name(segment.base_offset, LOG_SUFFIX))
        return done.size if done is not None else 0

    def _is_flushed_there(self) -> bool:
        """Return True if everything that is synced in the old directory is synced in the new one too."""
        log = self.log
        return (
            not log.flusher.is_flushing
            and max(log.recovery_point, log.flusher.synced_offset) <= self._synced_end
        )

    def _changing_names(self) -> Iterator[str]:
        """Yield the names of files that may have changed since the round: unflushed segments, and
        snapshots.
        """
        files = self.log.files
        for segment in files.segments[self._unsaved_from :]:
            for suffix in SEGMENT_SUFFIXES:
                yield offset_name(segment.base_offset, suffix)
        for offset in files.snapshots:
            yield offset_name(offset, SNAPSHOT_SUFFIX)

    def _swap(self) -> Deletion:
        log, key = self.log, self.log.tp
        deleted = self.source.path / deleted_directory(*key)
        place = self.target.path / partition_directory(*key)
        try:
            self.source.disk.rename(self._from, deleted)
        except OSError as error:
            raise self.source.health.fail(f"moving {self._from.name} away", error) from error
        try:
            self.target.disk.rename(self.path, place)
        except OSError as error:
            self._take_back(deleted)
            raise self._target_failed(error) from error
        del self.source.logs[key]
        del self.target.arriving[key]
        self.target.logs[key] = log
        self.is_done = True
        names = [name for name in self._unsynced if name.endswith(SNAPSHOT_SUFFIX)]
        snapshots = {int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in names}
        try:
            log.relocate(place, self.target.disk, self.target.health, unsynced_snapshots=snapshots)
        except OSError as error:
            self.target.health.fail(f"opening {place.name}", error)
        return Deletion(self.source.disk, [deleted], log.config.file_delete_delay_ms)

    def _take_back(self, deleted: Path) -> None:
        try:
            self.source.disk.rename(deleted, self._from)
        except OSError as error:
            raise self.source.health.fail(f"taking {self._from.name} back", error) from error

    def discard(self) -> Deletion:
        """Give up the move: rename the copy's directory away and return its deletion. Raises KafkaError."""
        self.target.arriving.pop(self.log.tp, None)
        return discard_future(self.target, self.path)


def discard_future(directory: LogDirectory, path: Path) -> Deletion:
    """Rename a future log's directory away and return its deletion: its move was cancelled, or a crash
    interrupted it.

    Raises KafkaError.
    """
    target = path.with_name(deleted_directory("future", 0))
    try:
        directory.disk.rename(path, target)
    except FileNotFoundError:
        return Deletion(directory.disk, [])
    except OSError as error:
        raise directory.health.fail(f"deleting {path.name}", error) from error
    return Deletion(directory.disk, [target])


def promote(
    directory: LogDirectory, topic: str, partition: int, path: Path, config: TopicConfig, now_ms: int
) -> Log:
    """Put a future log in place whose old directory is gone, and open it with a full check. Blocks.

    Raises KafkaError.
    """
    place = directory.path / partition_directory(topic, partition)
    opening = Opening(
        clean=False,
        recovery_point=0,
        log_start_offset=directory.start_offsets.get(TopicPartition(topic, partition), -1),
        compacted_to=LONG_MAX,  # the copy was whole: if a segment ends early, the old one did too
    )
    try:
        directory.disk.rename(path, place)
        directory.disk.sync_folder(directory.path)
        log, strays, _ = open_log(
            place,
            topic,
            partition,
            config,
            opening,
            disk=directory.disk,
            health=directory.health,
            now_ms=now_ms,
        )
    except OSError as error:
        raise directory.health.fail(f"putting {path.name} in place", error) from error
    directory.begin_epoch([log])
    directory.logs[log.tp] = log
    if strays:
        directory.deletions.append(Deletion(directory.disk, strays))
    return log
