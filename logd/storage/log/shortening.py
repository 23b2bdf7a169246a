"""Shortening a log: at its start by DeleteRecords and retention, at its end by truncation."""

from __future__ import annotations

from logd.errors import CorruptRecordBatch
from logd.storage.jobs import Deletion
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.recovery import rebuild_producers
from logd.storage.log.retention import removable
from logd.storage.log.rolling import roll
from logd.storage.log.state import LogState


class LogShortening:
    """The part of a log that takes records away, the oldest or the newest."""

    __slots__ = ("_flusher", "_state")

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher

    def delete_records_before(self, offset: int) -> list[Deletion]:
        """Raise the log start offset to `offset` (DeleteRecords); segments wholly below it go.

        The folder's next checkpoint keeps it. The deletions are to be run (in a thread) after their delay.
        Raises OffsetOutOfRange, KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if offset > state.log_end_offset:
            raise state.out_of_range(offset)
        if offset <= state.log_start_offset:
            return []
        state.log_start_offset = offset
        state.epochs.truncate_from_start(offset)
        return self._drop_oldest(state.segments.index_of(offset))

    def apply_retention(self, now_ms: int, *, upper_bound: int | None = None) -> list[Deletion]:
        """Drop old segments by retention.ms, retention.bytes and log start offset, all below `upper_bound`
        (the high watermark). An open transaction does not hold them back, as in Apache Kafka: one that hangs
        must not fill the disk.

        The deletions are to be run (in a thread) after their delay. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        try:
            count = removable(
                state.segments,
                state.config,
                log_start_offset=state.log_start_offset,
                log_end_offset=state.log_end_offset,
                upper_bound=state.log_end_offset if upper_bound is None else upper_bound,
                now_ms=now_ms,
            )
            if count == len(state.segments.row):
                roll(state, self._flusher, now_ms)
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("applying retention", error) from error
        deletions = self._drop_oldest(count)
        if state.segments.row[0].base_offset > state.log_start_offset:
            state.log_start_offset = state.segments.row[0].base_offset
            state.epochs.truncate_from_start(state.log_start_offset)
        return deletions

    def truncate_to(self, offset: int, now_ms: int) -> list[Deletion]:
        """Drop everything from the batch holding `offset` on: what a leader never had.

        Not while a flush is running. Write the folder's checkpoint before appending again: the recovery point
        on the disk may be too high now. The deletions are to be run (in a thread) after their delay.
        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if offset >= state.log_end_offset:
            return []
        try:
            paths = state.segments.truncate_to(offset, now_ms)
            state.log_end_offset = state.segments.active.next_offset()
            state.recovery_point = min(state.recovery_point, state.log_end_offset)
            self._flusher.truncated()
            state.log_start_offset = min(state.log_start_offset, state.log_end_offset)
            state.epochs.truncate_from_end(state.log_end_offset)
            state.producers = rebuild_producers(state.segments, state.snapshots, state.log_end_offset, now_ms)
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("truncating", error) from error
        return [Deletion(state.disk, paths, state.config.file_delete_delay_ms)] if paths else []

    def _drop_oldest(self, count: int) -> list[Deletion]:
        """Take out the oldest segments, with the producer snapshots before what is left."""
        if not count:
            return []
        state = self._state
        renames = state.segments.drop_oldest(count)
        start = state.segments.row[0].base_offset
        renames += state.snapshots.drop_before(start)
        try:
            # What the segments say of the producers is found nowhere else then.
            writes = state.snapshots.writes([start])
        except OSError as error:
            raise state.failed("writing producers", error) from error
        delay_ms = state.config.file_delete_delay_ms
        return [Deletion(state.disk, [], delay_ms, renames=renames, writes=writes, health=state.health)]
