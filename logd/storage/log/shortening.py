"""Shortening a log: at its start by DeleteRecords and retention, at its end by `truncation`."""

from __future__ import annotations

from kafka_client.errors import CorruptRecordBatch
from logd.storage.jobs import Deletion
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.retention import removable
from logd.storage.log.rolling import roll
from logd.storage.log.state import LogState
from logd.storage.log.truncation import Truncation


class LogShortening:
    """The part of a log that takes records away, the oldest or the newest."""

    __slots__ = ("_flusher", "_state")

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher

    def delete_records_before(self, offset: int) -> list[Deletion]:
        """Raise the log start offset to `offset` (DeleteRecords); segments wholly below it go.

        The directory's next checkpoint keeps it. The deletions are to be run (in a thread) after their delay.
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

    def start_truncation(self, offset: int, now_ms: int) -> Truncation | None:
        """Drop everything from the batch holding `offset` on: what a leader never had. None: there is none.

        All has to be on the disk, and no flush under way; what comes next says `Truncation`. Where nothing is
        left the log begins at `offset`. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if offset >= state.log_end_offset:
            # It may have been a leader that never wrote anything in its epoch.
            state.epochs.truncate_from_end(state.log_end_offset)
            return None
        keeps = offset > state.segments.row[0].base_offset
        return Truncation(state, self._flusher, offset, now_ms, keeps=keeps)

    def start_afresh(self, offset: int, now_ms: int) -> Truncation:
        """Start to drop all batches, so that the log is empty and its next offset is `offset`.

        A follower does so if the leader's log starts at a higher offset than the follower's log ends.
        Return what has to be run, as `start_truncation` does. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        return Truncation(state, self._flusher, offset, now_ms, keeps=False)

    def truncate_to(self, offset: int, now_ms: int) -> list[Deletion]:
        """Truncate the log to `offset` in the calling thread. Blocks.

        The directory's checkpoint may have a higher offset than the log then. Write the checkpoint before the
        next append, or a crash leaves both. Return the deletions of files; run them in a thread after their
        delay. Raises KafkaError.
        """
        self._flusher.flush()
        truncation = self.start_truncation(offset, now_ms)
        return [] if truncation is None else truncation.run_here()

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> list[Deletion]:
        """Remove all records and start again at `offset`, in this thread. Blocks. Raises KafkaError."""
        self._flusher.flush()
        return self.start_afresh(offset, now_ms).run_here()

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
