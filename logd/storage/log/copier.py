"""Writing what a leader sent: a run of batches of a Fetch answer, byte for byte, with its offsets and epochs.

A follower takes what the leader took. So nothing is decided here: producers are not checked but entered, as
recovery enters them, and a batch above segment.bytes has a segment to itself. Appending what clients send is
`writer`'s, and fetching `logd.replication`'s.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch, ErrorCode, error_for
from kafka_client.records.header import LOG_OVERHEAD, BatchHeader, Buffer
from kafka_client.records.run import Run, check_run
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.rolling import open_ms_max, roll, segment_for
from logd.storage.log.state import LogState
from logd.storage.segment import RELATIVE_OFFSET_MAX, Segment


class CopiedRun(NamedTuple):
    """The batches that were written: their number, size in bytes, and the range [base_offset, end_offset) of
    their offsets.

    The rest of the leader's response was a part of a batch.
    """

    base_offset: int
    end_offset: int
    batches: int
    size: int


class LogCopier:
    """The part of a log that writes what its leader has written."""

    __slots__ = ("_flusher", "_state")

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher

    def append(self, batches: Buffer, leader_epoch: int, now_ms: int) -> CopiedRun:
        """Append the whole batches of what the leader of `leader_epoch` sent for the log end offset.

        They may leave out offsets, as compaction does; into an empty log the first batch may bring records
        from before its start, as a leader's log has after DeleteRecords. One write for each segment they go
        to; `batches` is not changed and not kept. Does not fsync: see `LogFlusher.needs_flush`.

        Raises KafkaError: CORRUPT_MESSAGE for what `check_run` does not let pass, and nothing of the run was
        written then; KAFKA_STORAGE_ERROR (the disk failed and the directory is offline).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        due, is_empty = state.log_end_offset, not state.segments.active.size and not state.size
        try:
            run = check_run(
                batches,
                due=due,
                epoch=state.epochs.latest,
                epoch_max=leader_epoch,
                may_begin_before=is_empty,
            )
        except CorruptRecordBatch as error:
            raise error_for(
                ErrorCode.CORRUPT_MESSAGE, f"copying to {state.directory.name}: {error}"
            ) from None
        if not run.headers:
            return CopiedRun(due, due, 0, 0)
        try:
            if run.headers[0].base_offset < due:
                state.segments.begin_at(run.headers[0].base_offset, now_ms)
                self._flusher.names_changed()
            self._write(memoryview(batches), run, now_ms)
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("copying to", error) from error
        for started, start_offset in run.epochs:
            state.epochs.assign(started, max(start_offset, state.log_start_offset))
        if now_ms < self._flusher.unflushed_since_ms:
            self._flusher.unflushed_since_ms = now_ms
        return CopiedRun(run.headers[0].base_offset, state.log_end_offset, len(run.headers), run.size)

    def _write(self, batches: memoryview, run: Run, now_ms: int) -> None:
        state, headers = self._state, run.headers
        first = position = 0
        while first < len(headers):
            segment = self._segment_for(headers[first], now_ms)
            stop, size = self._reach(segment, headers, first, now_ms)
            segment.append_run(
                batches[position : position + size],
                islice(headers, first, stop),
                state.log_end_offset,
                state.config.index_interval_bytes,
            )
            if run.of_producers:
                self._enter_producers(segment, run, first, stop, now_ms)
            state.log_end_offset = headers[stop - 1].next_offset
            first = stop
            position += size

    def _segment_for(self, header: BatchHeader, now_ms: int) -> Segment:
        state = self._state
        last_offset = header.last_offset
        segment = segment_for(state, self._flusher, header.size, last_offset, header.max_timestamp, now_ms)
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            # A gap no segment can hold. A crash before the next flush takes the one behind for what is left
            # of a loss, and a follower fetches it again.
            state.log_end_offset = header.base_offset
            segment = roll(state, self._flusher, now_ms)
        return segment

    def _reach(
        self, segment: Segment, headers: list[BatchHeader], first: int, now_ms: int
    ) -> tuple[int, int]:
        """Return how far the batches from `first` on fit into the segment: an index, and their bytes.

        The index is that of the first batch which does not fit. The batch at `first` always fits.
        """
        config = self._state.config
        size = LOG_OVERHEAD + headers[first].batch_length
        stop = min(len(headers), first + max(segment.room(config.segment_index_bytes), 1))
        if first + 1 == stop:
            return stop, size
        limit = open_ms_max(segment, config)
        began = segment.first_timestamp if segment.size else headers[first].max_timestamp
        bytes_left = config.segment_bytes - segment.size
        last_offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
        is_old = now_ms - segment.created_ms > limit
        for place in range(first + 1, stop):
            header = headers[place]
            timestamp = header.max_timestamp
            grown = size + LOG_OVERHEAD + header.batch_length
            if (
                grown > bytes_left
                or (timestamp - began > limit if began >= 0 <= timestamp else is_old)
                or header.base_offset + header.last_offset_delta > last_offset_max
            ):
                return place, size
            size = grown
        return stop, size

    def _enter_producers(self, segment: Segment, run: Run, first: int, stop: int, now_ms: int) -> None:
        """Enter the batches [first, stop) of producers, which were written to the segment."""
        producers = self._state.producers
        for place in run.of_producers:
            if not first <= place < stop:
                continue
            header, marker = run.headers[place], run.markers.get(place)
            offset = header.base_offset
            if marker is None:
                if not header.is_control:
                    producers.record(header, offset, now_ms)
                continue
            producer_id, epoch = header.producer_id, header.producer_epoch
            ended = producers.record_marker(producer_id, epoch, marker.coordinator_epoch, offset, now_ms)
            if ended is not None and not marker.commit:
                entry = AbortedTransaction(producer_id, ended.first_offset, offset, ended.last_stable_offset)
                segment.txn_index.append(entry)
