"""Forcing a log to the disk: what is due, what a flush takes along, and the clean end.

Everything below the recovery point is known to be on the disk. A flush also takes a producer snapshot once
the log has grown enough, so that opening it after a crash replays no more than the flushes left over. Aborted
transactions are in their index's file already; a flush forces it to the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from logd.errors import CorruptRecordBatch
from logd.storage.checkpoints import encode_partition_metadata
from logd.storage.disk import Disk, File, write_atomically
from logd.storage.health import Health
from logd.storage.jobs import FileWrite, Flush
from logd.storage.log.state import LogState
from logd.storage.names import LEADER_EPOCHS, PARTITION_METADATA
from logd.storage.segment import Segment

NEVER = 2**63 - 1
SNAPSHOT_BYTES = 1024 * 1024
"""A flush takes a producer snapshot when the active segment has grown by this much since the last one."""


class LogFlusher(LogState):
    """The part of a log that makes it durable.

    recovery point ≤ synced offset ≤ sync started to ≤ log end offset: what stands below the second is on the
    disk, what stands below the third will be once the flush under way has ended.
    """

    def __init__(self, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self.synced_offset = self.sync_started_to = self.recovery_point
        self._snapshot_at = 0
        self._unsynced_folders: list[Path] = [self.folder, self.folder.parent]
        self._under_way = 0
        self._folders_under_way: list[Path] = []
        """Where the flushes under way sync names: one that overtakes them has to do it as well."""
        self._unflushed_since_ms = NEVER
        self._flushing = threading.Lock()
        self.is_id_unsynced = False
        """Whether a flush has to force `partition.metadata` to the disk still: records that do not say what
        topic they are of would be taken for those of another topic of that name.
        """

    def needs_flush(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms ask for a sync, before the last append is acknowledged."""
        unflushed = self.log_end_offset - self.sync_started_to
        return unflushed > 0 and (
            unflushed >= self.config.flush_messages
            or now_ms - self._unflushed_since_ms >= self.config.flush_ms
        )

    def identify(self, topic_id: bytes) -> None:
        """Note whose log this is. May raise OSError."""
        write_id(self._disk, self.folder, topic_id)
        self.topic_id = topic_id
        self.is_id_unsynced = True
        self._names_changed()

    @property
    def is_flushed(self) -> bool:
        """Whether the disk has all there is."""
        return not (
            self.log_end_offset > self.recovery_point or self.epochs.dirty or self._snapshots.unsynced
        )

    def start_flush(self) -> Flush | None:
        """The fsyncs outstanding; run it (any thread), then hand it to `finish_flush`. None: nothing to do.

        Writes the indexes out, since no recovery point may pass entries that only memory has.
        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        if self.is_flushed:
            return None
        try:
            # From the segment of the last flushed record: rolling it has added to its indexes since.
            segments = self._segments.row[self._segments.index_of(self.recovery_point - 1) :]
            writes = [write for segment in segments for write in segment.start_save()]
            id_write = self._unsynced_id()
            if any(write.position == 0 for write in writes):
                self._names_changed()
            obsolete = self._take_snapshot_if_due()
            files = [segment.file for segment in segments] + self._snapshots.start_sync()
            aborts = [file for segment in segments if (file := segment.txn_index.save()) is not None]
            if aborts:
                files += aborts
                self._names_changed()
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("writing indexes", error) from error
        epochs = (self.folder / LEADER_EPOCHS, self.epochs.encode()) if self.epochs.dirty else None
        self.epochs.dirty = False
        return self._flush_job(
            files, writes=[*writes, *id_write], epochs=epochs, segments=segments, obsolete=obsolete
        )

    def start_sync(self) -> Flush | None:
        """As `start_flush`, of the records alone: they outlast a power loss then, though recovery reads them.

        What an acknowledgement waits for by flush.messages and flush.ms: one fsync as a rule.
        """
        if self._health.failure is not None:
            raise self._health.error()
        if self.log_end_offset <= self.synced_offset:
            return None
        try:
            row = self._segments.row
            files = [segment.file for segment in row[self._segments.index_of(self.synced_offset) :]]
            writes = self._unsynced_id()
        except OSError as error:
            raise self._failed("flushing", error) from error
        return self._flush_job(files, writes=writes)

    def _unsynced_id(self) -> list[FileWrite]:
        if not self.is_id_unsynced:
            return []
        return [FileWrite(self._disk.open(self.folder / PARTITION_METADATA), 0, b"")]

    def _flush_job(
        self,
        files: list[File],
        *,
        writes: Sequence[FileWrite] = (),
        epochs: tuple[Path, bytes] | None = None,
        segments: Sequence[Segment] = (),
        obsolete: Sequence[Path] = (),
    ) -> Flush:
        self._unflushed_since_ms = NEVER
        self.sync_started_to = self.log_end_offset
        folders = list(dict.fromkeys((*self._folders_under_way, *self._unsynced_folders)))
        self._folders_under_way, self._unsynced_folders = folders, []
        self._under_way += 1
        return Flush(
            self._health,
            self._disk,
            files=files,
            writes=writes,
            folders=folders,
            epochs=epochs,
            end_offset=self.log_end_offset,
            turn=self._flushing,
            segments=segments,
            obsolete=obsolete,
        )

    def _names_changed(self) -> None:
        if self.folder not in self._unsynced_folders:
            self._unsynced_folders.append(self.folder)

    def _take_snapshot_if_due(self) -> list[Path]:
        """Producers as of the next recovery point, so that finding them again reads little of a large log.

        Returns the snapshots nobody needs once that one is on the disk: as Kafka, we keep those at the
        beginnings of segments and the latest.
        """
        size = self._segments.active.size
        if size - self._snapshot_at < SNAPSHOT_BYTES:
            return []
        self._snapshots.take(self.log_end_offset, self.producers)
        self._snapshot_at = size
        self._names_changed()
        return self._snapshots.drop_between({segment.base_offset for segment in self._segments.row})

    @property
    def is_flushing(self) -> bool:
        """Whether a flush is under way."""
        return self._flushing.locked() or self.sync_started_to != self.synced_offset

    def finish_flush(self, flush: Flush) -> None:
        """The flush was run: raise the recovery point, if the indexes were written as well."""
        if not flush.is_of(self._health):
            return  # the log has moved to another log folder meanwhile
        self.is_id_unsynced = False
        self._under_way -= 1
        if not self._under_way:
            self._folders_under_way = []
        end = min(flush.end_offset, self.log_end_offset)
        self.synced_offset = max(self.synced_offset, end)
        if not flush.segments:
            return
        self.recovery_point = max(self.recovery_point, end)
        for segment in flush.segments:
            segment.saved()
            if segment is not self._segments.active:
                segment.unload()

    def flush(self) -> None:
        """Flush here and now. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        flush = self.start_flush()
        if flush is not None:
            flush.run()
            self.finish_flush(flush)

    def sync(self) -> None:
        """Have the records on the disk here and now. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        sync = self.start_sync()
        if sync is not None:
            sync.run()
            self.finish_flush(sync)
        self.release()

    def close(self) -> None:
        """Flush, take a producer snapshot, let go of the files. Blocks.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is None:
            try:
                self._segments.active.finish()
                if self.log_end_offset > self._snapshots.latest:
                    self._snapshots.take(self.log_end_offset, self.producers)
            except (OSError, CorruptRecordBatch) as error:
                raise self._failed("closing", error) from error
            self.flush()
        self.release()

    def relocate(self, folder: Path, disk: Disk, health: Health, *, unsynced_snapshots: set[int]) -> None:
        """All files are in another log folder now, byte for byte (`future`): go on there.

        Not while it `is_flushing`. What was not flushed yet is flushed there. May raise OSError: the log is
        there all the same, and that folder has failed.
        """
        self.folder, self._disk, self._health = folder, disk, health
        self._unsynced_folders = [folder, folder.parent]
        self._under_way, self._folders_under_way = 0, []
        self.epochs.dirty = True
        self._snapshots.relocate(disk, folder, unsynced_snapshots)
        self._segments.relocate(disk, folder)

    def release(self) -> None:
        """Let go of the files as they are; slices given out stay readable."""
        for segment in self._segments.row:
            segment.close()


def write_id(disk: Disk, folder: Path, topic_id: bytes) -> None:
    """Note in a log's folder which topic it is of; left to a flush to be forced to the disk. OSError."""
    write_atomically(disk, folder / PARTITION_METADATA, encode_partition_metadata(topic_id), sync=False)
