"""Taking away a log's end, or all of it, where its leader's history is another one: a job for a thread.

    start   owner    all is on the disk (a flush); the log is lent: calls raise KafkaError until `finish`
            thread   the directory's checkpoints, which must say no more than what is going to be kept
    run     thread   files renamed away, the newest first, the last one cut; what is left is opened and synced
    finish  owner    the log goes on with what was opened

A crash on the way leaves what was kept, with some of what was not behind it, in its order: recovery finds a
log that has lost its end. Once `finish` is reached nothing of what was cut can come back behind new records;
a start after a kill finds the file that says that something was being cut, and syncs first.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError, error_for
from logd.storage.disk import write_atomically
from logd.storage.health import Health
from logd.storage.jobs import Deletion
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.recovery import rebuild_producers
from logd.storage.log.state import LogState
from logd.storage.names import LEADER_EPOCHS, TRUNCATION
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.segment import Segment
from logd.storage.segments import Segments

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The part of a log that a truncation leaves, opened by the truncation alone; `renamed` are files to be
    unlinked.
    """

    segments: Segments
    snapshots: Snapshots
    producers: ProducerState
    epochs: LeaderEpochs
    end_offset: int
    renamed: Sequence[Path]


class Truncation:
    """The truncation of one log, created by `LogShortening`. The module says who calls which method.

    The checkpoint must have `recovery_point` before `run`: nothing before it is removed. No high watermark or
    cleaner offset above it may be on the disk either.
    """

    def __init__(
        self, state: LogState, flusher: LogFlusher, end_offset: int, now_ms: int, *, keeps: bool
    ) -> None:
        """Keep the records before `end_offset` if `keeps`; else the log becomes empty, and begins there."""
        assert flusher.is_flushed and not flusher.is_flushing, "what is lent is on the disk"
        self._state = state
        self._flusher = flusher
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._keeps = keeps
        row = state.segments.row
        count = bisect_left(row, end_offset, key=lambda segment: segment.base_offset) if keeps else 0
        self._remaining, self._dropped = row[:count], row[count:]
        self._remainder: Remainder | None = None
        self._health = state.health
        self._lent = state.health = Health(state.directory)
        self._lent.failure = f"{state.directory.name} is being truncated"
        self.recovery_point = self._remaining[-1].base_offset if self._remaining else end_offset
        state.recovery_point = min(state.recovery_point, self.recovery_point)
        state.log_start_offset = min(state.log_start_offset, end_offset) if keeps else end_offset

    # In any thread

    def run(self) -> None:
        """Carry it out. Blocks. Raises KafkaError: KAFKA_STORAGE_ERROR (the disk failed and the directory is
        offline), CORRUPT_MESSAGE where what is to be kept is damaged; nothing has changed then.
        """
        name = self._state.directory.name
        if self._health.failure is not None:
            raise self._health.error()
        try:
            self._remainder = self._run()
        except (OSError, CorruptRecordBatch) as error:
            if self._is_gone:  # What was read may be of a new log of the same name.
                logger.debug("%s went away while it was truncated", name)
                return
            if isinstance(error, OSError):
                raise self._health.fail(f"truncating {name}", error) from error
            raise error_for(ErrorCode.CORRUPT_MESSAGE, f"truncating {name}: {error}") from error

    @property
    def _is_gone(self) -> bool:
        """True if the log was deleted meanwhile: a new one of its name may be in its place."""
        return self._state.health is not self._lent

    def _run(self) -> Remainder:
        disk, directory = self._state.disk, self._state.directory
        row = [
            Segment(disk, directory, segment.base_offset, segment.size, segment.created_ms)
            for segment in self._remaining
        ]
        position = row[-1].locate(self._end_offset) if row else None
        self._state.segments.active.place()
        mark = disk.open(directory / TRUNCATION)
        renamed = self._rename_dropped()
        if row:
            active = row[-1]
            if position is not None:
                active.truncate(position[0], self._end_offset)
            end_offset = active.next_offset()
        else:
            active = Segment.create(disk, directory, self._end_offset, self._now_ms)
            row.append(active)
            end_offset = self._end_offset
        segments = Segments(disk, directory, row)
        snapshots = Snapshots(disk, directory, list(self._state.snapshots.offsets))
        producers = self._producers(segments, snapshots, end_offset)
        epochs = self._state.epochs.before(end_offset if self._keeps else 0)
        for file in active.save():
            file.sync()
        write_atomically(disk, directory / LEADER_EPOCHS, epochs.encode())
        disk.sync_folder(directory)
        mark.close()
        disk.unlink(directory / TRUNCATION)
        active.expect_appends()
        return Remainder(
            segments=segments,
            snapshots=snapshots,
            producers=producers,
            epochs=epochs,
            end_offset=end_offset,
            renamed=renamed,
        )

    def _rename_dropped(self) -> list[Path]:
        """Rename dropped segments' files, newest first, so that a crash leaves no gap between segments."""
        disk = self._state.disk
        renamed = []
        for segment in reversed(self._dropped):
            for path, target in segment.renames():
                if self._is_gone:
                    raise FileNotFoundError(path)
                try:
                    disk.rename(path, target)
                except FileNotFoundError:
                    continue  # not every segment has every file
                renamed.append(target)
        return renamed

    def _producers(self, segments: Segments, snapshots: Snapshots, end_offset: int) -> ProducerState:
        if self._keeps:
            return rebuild_producers(segments, snapshots, end_offset, self._now_ms)
        snapshots.drop_after(-1)
        return ProducerState()

    # By the owner

    def finish(self) -> list[Deletion]:
        """Make the log usable again after `run`, whether that succeeded or not.

        Return the deletions of the dropped files; run them in a thread after their delay. Return none for a
        log that was deleted.
        """
        state, left = self._state, self._remainder
        if self._is_gone:
            return []
        state.health = self._health
        if left is None:
            return []
        state.segments.release()
        state.segments, state.snapshots, state.producers = left.segments, left.snapshots, left.producers
        state.epochs.replace(left.epochs)
        state.log_end_offset = state.recovery_point = left.end_offset
        state.log_start_offset = min(state.log_start_offset, left.end_offset)
        self._flusher.truncated()
        if not left.renamed:
            return []
        return [Deletion(state.disk, left.renamed, state.config.file_delete_delay_ms)]

    def run_here(self) -> list[Deletion]:
        """Call `run` and `finish` in this thread. Blocks."""
        try:
            self.run()
        except KafkaError:
            self.finish()
            raise
        return self.finish()
