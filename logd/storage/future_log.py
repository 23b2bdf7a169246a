"""A log on its way into another folder: copied file by file while it serves, until it goes on over there.

    <log folder>/<topic>-<partition>.<unique>-future/        as Kafka names it, with a log's own files inside

The files are the same byte for byte, so what a log knows of itself (offsets, producers, epochs) stays true
and only its place changes. Segments and indexes grow at their end; a file that was replaced (compaction)
or shrank is copied anew, one that went is dropped. In rounds, each shorter than the one before:

    begin_round      owner    what there is
    copy … copy      thread   some bytes each, until it says that all is copied
    sync             thread   all of that is on the disk; only before `finish`
    finish           owner    the last few bytes, then two renames: the old folder away, the new one in place

A crash leaves the old folder (the copy is thrown away and begun again) or, between the two renames, only a
copy that is whole and on the disk, which `promote` puts in place. So nothing that was flushed is lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_client.topic_partition import TopicPartition
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage.checkpoints import encode_partition_metadata
from logd.storage.disk import File, write_atomically
from logd.storage.errors import NoRoom
from logd.storage.folder import LogFolder
from logd.storage.health import NO_ROOM, remedy
from logd.storage.jobs import Deletion
from logd.storage.log.loader import Opening, open_log
from logd.storage.log.log import Log
from logd.storage.names import (
    LEADER_EPOCHS,
    LOG_SUFFIX,
    PARTITION_METADATA,
    REMOVAL_OFFSET,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    deleted_folder,
    future_folder,
    offset_name,
    parse_offset,
    partition_folder,
)
from logd.storage.segment import Segment

CHUNK_BYTES = 1024 * 1024
"""Read and written at a time."""
LAST_BYTES_MAX = 1024 * 1024
"""What the owner itself may have to copy in the end, while nothing is appended."""

_OF_A_LOG = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)")


class Copied(NamedTuple):
    """How much of which file was copied."""

    inode: int
    size: int
    modified_ns: int


class FutureLog:
    """One log's move from `source` to `target`. Who calls what: see the module.

    `size` bytes of segments are copied; `end_offset` is about where the copy ends; `is_done` once the log is
    in its new folder.
    """

    def __init__(self, log: Log, source: LogFolder, target: LogFolder) -> None:
        """Raises ValueError if the topic's name is too long for a future log's folder."""
        self.log = log
        self.source = source
        self.target = target
        self.path = target.path / future_folder(log.topic, log.partition)
        self.size = 0
        self.end_offset = 0
        self.is_done = False
        self._from = log.folder
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
        """Make the folder: from now on a crash does not forget the move. KafkaError, NoRoom."""
        try:
            self.log.place()
        except OSError as error:
            raise self.source.health.fail(f"creating {self.log.folder.name}", error) from error
        try:
            self.path.mkdir()
            if self.log.topic_id is not None:
                data = encode_partition_metadata(self.log.topic_id)
                write_atomically(self.target.disk, self.path / PARTITION_METADATA, data)
            self.target.disk.sync_folder(self.target.path)
        except OSError as error:
            raise self._target_failed(error) from error

    def copy(self, bytes_max: int) -> tuple[int, bool]:
        """Copy about so many bytes: how many it were, and whether the round is at its end.

        FileNotFoundError when the log was deleted. KafkaError, NoRoom.
        """
        copied = 0
        for size in self._files:
            copied += size
            if copied >= bytes_max:
                return copied, False
        self.end_offset = self._round_end
        return copied, True

    def sync(self) -> None:
        """Have the round's bytes on the disk. KafkaError, NoRoom."""
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
        found = {name for name in os.listdir(self._from) if _OF_A_LOG.fullmatch(name) and name >= first}
        for name in sorted(self._copied.keys() - found):
            self._drop(name)
        for name in sorted(found):
            if (base := parse_offset(name, LOG_SUFFIX)) is not None:
                self.end_offset = max(self.end_offset, base)
            yield from self._catch_up(name)

    def _catch_up(self, name: str) -> Iterator[int]:
        """Copy what a file has more than its copy; yields the bytes of each chunk."""
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
        """A full disk ends the move and harms nobody else; any other failure takes the folder offline."""
        if error.errno in NO_ROOM:
            return NoRoom(f"{self._from.name} is not moved to {self.target.path}: {error}; {remedy(error)}")
        return self.target.health.fail(f"writing {self.path.name}", error)

    # By the owner

    def begin_round(self) -> None:
        """Look at what is to be copied; `copy` it next."""
        log = self.log
        self._row = log.files.segments
        self._unsaved_from = log.files.unsaved_from
        self._round_end = log.log_end_offset
        self._epochs = log.epochs.encode()
        self._removals = log.removals.encode() if log.removals.is_known else b""
        self._files = self._round()

    def finish(self) -> Deletion | None:
        """Copy the rest and have the log go on in its new folder; None: too much is missing, another round.

        The target's checkpoint must have been written since `begin_round`, with the log among `arriving`.
        Next sync both folders, then run the deletion of the old files. KafkaError, NoRoom.
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
        """Whether all but the last bytes are copied, and no older file went or was replaced meanwhile."""
        row = self.log.files.segments
        missing = sum(segment.size - self._copied_of(segment) for segment in row[self._unsaved_from :])
        return row[: len(self._row)] == self._row and missing <= LAST_BYTES_MAX

    def _copied_of(self, segment: Segment) -> int:
        done = self._copied.get(offset_name(segment.base_offset, LOG_SUFFIX))
        return done.size if done is not None else 0

    def _is_flushed_there(self) -> bool:
        """Whether what the old folder has on the disk the new one has as well."""
        log = self.log
        return (
            not log.flusher.is_flushing
            and max(log.recovery_point, log.flusher.synced_offset) <= self._synced_end
        )

    def _changing_names(self) -> Iterator[str]:
        """Files that may have changed since the round: those a flush was still to write, and snapshots."""
        files = self.log.files
        for segment in files.segments[self._unsaved_from :]:
            for suffix in SEGMENT_SUFFIXES:
                yield offset_name(segment.base_offset, suffix)
        for offset in files.snapshots:
            yield offset_name(offset, SNAPSHOT_SUFFIX)

    def _swap(self) -> Deletion:
        log, key = self.log, self.log.tp
        gone = self.source.path / deleted_folder(*key)
        place = self.target.path / partition_folder(*key)
        try:
            self.source.disk.rename(self._from, gone)
        except OSError as error:
            raise self.source.health.fail(f"moving {self._from.name} away", error) from error
        try:
            self.target.disk.rename(self.path, place)
        except OSError as error:
            self._take_back(gone)
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
        return Deletion(self.source.disk, [gone], log.config.file_delete_delay_ms)

    def _take_back(self, gone: Path) -> None:
        try:
            self.source.disk.rename(gone, self._from)
        except OSError as error:
            raise self.source.health.fail(f"taking {self._from.name} back", error) from error

    def discard(self) -> Deletion:
        """The move is given up: the copy's folder is renamed away, to be deleted. KafkaError."""
        self.target.arriving.pop(self.log.tp, None)
        return discard_future(self.target, self.path)


def discard_future(folder: LogFolder, path: Path) -> Deletion:
    """Have a future log's folder deleted: it is not wanted, or not to be trusted (a crash). KafkaError."""
    target = path.with_name(deleted_folder("future", 0))
    try:
        folder.disk.rename(path, target)
    except FileNotFoundError:
        return Deletion(folder.disk, [])
    except OSError as error:
        raise folder.health.fail(f"deleting {path.name}", error) from error
    return Deletion(folder.disk, [target])


def promote(
    folder: LogFolder, topic: str, partition: int, path: Path, config: TopicConfig, now_ms: int
) -> Log:
    """Put a future log in place whose old folder is gone, and open it, which checks all of it. Blocks.

    Raises KafkaError.
    """
    place = folder.path / partition_folder(topic, partition)
    opening = Opening(
        clean=False,
        recovery_point=0,
        log_start_offset=folder.start_offsets.get(TopicPartition(topic, partition), -1),
        compacted_to=LONG_MAX,  # the copy was whole: where a segment ends early, the old one did
    )
    try:
        folder.disk.rename(path, place)
        folder.disk.sync_folder(folder.path)
        log, strays, _ = open_log(
            place, topic, partition, config, opening, disk=folder.disk, health=folder.health, now_ms=now_ms
        )
    except OSError as error:
        raise folder.health.fail(f"putting {path.name} in place", error) from error
    folder.begin_epoch([log])
    folder.logs[log.tp] = log
    if strays:
        folder.deletions.append(Deletion(folder.disk, strays))
    return log
