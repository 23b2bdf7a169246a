"""Flushing a log to the disk: when it is due, what a flush writes, and the clean end.

Everything below the recovery point is known to be on the disk. A flush also takes a producer snapshot once
the log has grown enough. A start after a crash then replays only the bytes after that snapshot. Aborted
transactions are in their index's file already; a flush syncs it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from kafka_client.errors import CorruptRecordBatch
from logd.storage.disk import write_atomically
from logd.storage.jobs import FileWrite, Flush, FlushContents
from logd.storage.log.state import LogState
from logd.storage.names import LEADER_EPOCHS, PARTITION_METADATA

NEVER = 2**63 - 1
SNAPSHOT_BYTES = 1024 * 1024
"""A flush takes a producer snapshot when the active segment has grown by this much since the last one."""


class LogFlusher:
    """The part of a log that makes it durable.

    recovery point ≤ synced offset ≤ sync started to ≤ log end offset: what stands below the second is on the
    disk, what stands below the third will be once the flush under way has ended.
    """

    __slots__ = (
        "_directories_under_way",
        "_flushing",
        "_snapshot_at",
        "_state",
        "_under_way",
        "_unsynced_directories",
        "is_id_unsynced",
        "sync_started_to",
        "synced_offset",
        "unflushed_since_ms",
    )

    def __init__(self, state: LogState) -> None:
        self._state = state
        self.synced_offset = self.sync_started_to = state.recovery_point
        self.unflushed_since_ms = NEVER
        """When the first append came that no sync takes along yet: the writer notes it."""
        self.is_id_unsynced = False
        """True if a flush has to force `partition.metadata` to the disk still: records that do not say what
        topic they are of would be taken for those of another topic of that name.
        """
        self._snapshot_at = 0
        self._unsynced_directories: tuple[Path, ...] = (state.directory, state.directory.parent)
        self._under_way = 0
        self._directories_under_way: tuple[Path, ...] = ()
        """Where the flushes under way sync names: one that overtakes them has to do it as well."""
        self._flushing = threading.Lock()

    # What the log tells it

    def names_changed(self) -> None:
        """Note that files were created or removed in the log's directory: the next flush syncs it."""
        state = self._state
        if state.directory not in self._unsynced_directories:
            self._unsynced_directories += (state.directory,)

    def rolled(self) -> None:
        """Note that a new segment has begun, with a producer snapshot at its start."""
        self._snapshot_at = 0
        self.names_changed()

    def truncated(self) -> None:
        """Note that the log was truncated, and that everything left is on the disk."""
        self.synced_offset = self.sync_started_to = self._state.log_end_offset
        self.unflushed_since_ms = NEVER
        self._snapshot_at = 0

    def relocated(self) -> None:
        """Note that all files are in another log directory now; what was not flushed yet is flushed there.

        Not to be called while the log `is_flushing`.
        """
        state = self._state
        self._unsynced_directories = (state.directory, state.directory.parent)
        self._under_way, self._directories_under_way = 0, ()

    # Flushing

    def needs_flush(self, now_ms: int) -> bool:
        """Return True if flush.messages or flush.ms ask for a sync before the last append is acknowledged."""
        state = self._state
        unflushed = state.log_end_offset - self.sync_started_to
        return unflushed > 0 and (
            unflushed >= state.config.flush_messages
            or now_ms - self.unflushed_since_ms >= state.config.flush_ms
        )

    @property
    def is_flushed(self) -> bool:
        """True if the disk has all there is."""
        state = self._state
        return not (
            state.log_end_offset > state.recovery_point or state.epochs.dirty or state.snapshots.unsynced
        )

    def start_flush(self) -> Flush | None:
        """Return the outstanding fsyncs, or None if everything is flushed.

        Run the flush in any thread, then pass it to `finish_flush`. The flush writes the indexes too, since
        no recovery point may pass index entries that only memory has. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if self.is_flushed:
            return None
        try:
            # From the segment of the last flushed record: rolling it has added to its indexes since.
            segments = state.segments.row[state.segments.index_of(state.recovery_point - 1) :]
            writes = [write for segment in segments for write in segment.start_save()]
            id_write = self._unsynced_id()
            if any(write.position == 0 for write in writes):
                self.names_changed()
            obsolete = self._take_snapshot_if_due()
            files = [segment.file for segment in segments]
            snapshots = state.snapshots.start_sync()
            aborts = [file for segment in segments if (file := segment.txn_index.save()) is not None]
            if aborts:
                files += aborts
                self.names_changed()
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("writing indexes", error) from error
        return self._flush_job(
            FlushContents(
                files=files,
                writes=[*writes, *id_write],
                snapshots=snapshots,
                epochs=self._unwritten_epochs(),
                segments=segments,
                obsolete=obsolete,
            )
        )

    def _unwritten_epochs(self) -> tuple[Path, bytes] | None:
        state = self._state
        data = state.epochs.start_write()
        return None if data is None else (state.directory / LEADER_EPOCHS, data)

    def start_sync(self) -> Flush | None:
        """Return a flush of the segments' records without the indexes, or None if all records are synced.

        After that flush the records survive a power loss, but recovery has to read them to rebuild the
        indexes. With flush.messages or flush.ms an acknowledgement waits for such a flush. It usually costs
        one fsync. Raises KafkaError(KAFKA_STORAGE_ERROR) if the log has failed.
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if state.log_end_offset <= self.synced_offset:
            return None
        try:
            row = state.segments.row
            files = [segment.file for segment in row[state.segments.index_of(self.synced_offset) :]]
            writes = self._unsynced_id()
        except OSError as error:
            raise state.failed("flushing", error) from error
        return self._flush_job(FlushContents(files=files, writes=writes))

    def _unsynced_id(self) -> list[FileWrite]:
        if not self.is_id_unsynced:
            return []
        state = self._state
        return [FileWrite(state.disk.open(state.directory / PARTITION_METADATA), 0, b"")]

    def _flush_job(self, contents: FlushContents) -> Flush:
        state = self._state
        if contents.epochs is not None:
            self.names_changed()
        self.unflushed_since_ms = NEVER
        self.sync_started_to = state.log_end_offset
        directories = tuple(dict.fromkeys((*self._directories_under_way, *self._unsynced_directories)))
        self._directories_under_way, self._unsynced_directories = directories, ()
        self._under_way += 1
        return Flush(
            state.health,
            state.disk,
            contents,
            directories=directories,
            end_offset=state.log_end_offset,
            turn=self._flushing,
        )

    def _take_snapshot_if_due(self) -> list[Path]:
        """Take a producer snapshot at the next recovery point, so that a start reads little of a large log.

        Return the snapshots that nobody needs once the new one is on the disk. As in Kafka, those at the
        starts of segments are kept, and the latest.
        """
        state = self._state
        size = state.segments.active.size
        if size - self._snapshot_at < SNAPSHOT_BYTES:
            return []
        state.snapshots.take(state.log_end_offset, state.producers)
        self._snapshot_at = size
        self.names_changed()
        return state.snapshots.drop_between({segment.base_offset for segment in state.segments.row})

    @property
    def is_flushing(self) -> bool:
        """True if a flush is under way."""
        return self._flushing.locked() or self.sync_started_to != self.synced_offset

    def finish_flush(self, flush: Flush) -> None:
        """Note that `flush` was run; raise the recovery point if it wrote the indexes as well."""
        state = self._state
        if not flush.is_of(state.health):
            return  # the log has moved to another log directory meanwhile
        self.is_id_unsynced = False
        self._under_way -= 1
        if not self._under_way:
            self._directories_under_way = ()
        end = min(flush.end_offset, state.log_end_offset)
        self.synced_offset = max(self.synced_offset, end)
        state.snapshots.synced(flush.snapshots)
        if not flush.segments:
            return
        state.recovery_point = max(state.recovery_point, end)
        for segment in flush.segments:
            segment.saved()
            if segment is not state.segments.active:
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
        self._state.segments.release()

    def finish(self) -> None:
        """Flush, and take a producer snapshot: the log is closed. Blocks.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        try:
            state.segments.active.finish()
            if state.log_end_offset > state.snapshots.latest:
                state.snapshots.take(state.log_end_offset, state.producers)
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("closing", error) from error
        self.flush()
        self._write_begun_epoch()

    def _write_begun_epoch(self) -> None:
        """Write the leader epochs of a log that has begun an epoch but has no new records to flush."""
        state = self._state
        epochs = self._unwritten_epochs()
        if epochs is not None:
            try:
                write_atomically(state.disk, *epochs)
            except OSError as error:
                raise state.failed("writing its leader epochs", error) from error
