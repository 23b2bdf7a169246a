"""Writing a log: batches get their offsets and their place in the active segment; markers end transactions.

An append waits for no disk but the page cache, and no append is forced to the disk here (`flusher`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError, error_for
from kafka_client.records.control import Marker, SealedMarker, parse_marker, seal_marker
from kafka_client.records.header import CONTROL_BIT, BatchHeader, Buffer, iter_batches
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.rolling import segment_for
from logd.storage.log.state import LogState
from logd.storage.placement import place, place_at_time
from logd.storage.producers.producer import NO_NUMBER, BatchMemo

APPEND_TIME = "LogAppendTime"


class Appended(NamedTuple):
    """Where an append went. `log_append_time` is -1 on CreateTime topics.

    `duplicate` means an idempotent producer sent the batch again: the offsets are those of the first time and
    nothing was written.
    """

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class LogWriter:
    """The part of a log that writes."""

    __slots__ = ("_flusher", "_state")

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher

    def append(
        self,
        batches: Buffer,
        leader_epoch: int,
        now_ms: int,
        *,
        headers: Sequence[BatchHeader] | None = None,
        from_client: bool = True,
    ) -> Appended:
        """Append validated whole batches (CRC checked); offsets are assigned from the log end offset on.

        `headers`: pass them if already read. `batches` itself is not changed and not kept. A batch of an
        idempotent producer has to come alone; without `from_client` it is a coordinator's, whose sequence
        does not count. Does not fsync: see `LogFlusher.needs_flush`. Raises KafkaError:
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, RECORD_LIST_TOO_LARGE,
        INVALID_RECORD, KAFKA_STORAGE_ERROR (the disk failed and the directory is offline).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if headers is None:
            headers = [header for _, header in iter_batches(batches)]
        append_time = now_ms if state.config.message_timestamp_type == APPEND_TIME else -1
        base_offset = state.log_end_offset
        header = headers[0]
        if len(headers) > 1:
            self._append_several(batches, headers, leader_epoch, append_time, now_ms)
        elif header.producer_id < 0:
            self._append_one(memoryview(batches), header, leader_epoch, append_time, now_ms)
        elif header.attributes & CONTROL_BIT:
            marker = _marker_in(batches)
            self._append_marker(memoryview(batches), header, marker, leader_epoch, append_time, now_ms, 0)
        else:
            if from_client:
                memo = state.producers.check(header)
                if memo is not None:
                    return self._duplicate(memo, append_time)
            else:
                state.producers.check_unsequenced(header)
            self._append_one(memoryview(batches), header, leader_epoch, append_time, now_ms)
            state.producers.record(header, base_offset, now_ms)
        return Appended(base_offset, state.log_end_offset - 1, append_time, state.log_start_offset)

    def append_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
        transaction_number: int = NO_NUMBER,
    ) -> Appended:
        """End the producer's transaction with a marker, which is written even if none is open here.

        From transaction version 2 on the marker's epoch is newer than that of the transaction's records
        (KIP-890), and the producer goes on with it. Raises KafkaError: INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        marker = seal_marker(
            commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        return self.append_sealed(marker, leader_epoch, now_ms, transaction_version, transaction_number)

    def append_sealed(
        self,
        marker: SealedMarker,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int,
        transaction_number: int = NO_NUMBER,
    ) -> Appended:
        """Append a marker that is built already, as `append_marker` does.

        A marker whose coordinator's number of the transaction was appended before is a duplicate.
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        append_time = now_ms if state.config.message_timestamp_type == APPEND_TIME else -1
        offset = state.log_end_offset
        batch, header, facts = marker
        producers, producer_id = state.producers, header.producer_id
        memo = producers.repeated_marker(producer_id, facts.coordinator_epoch, transaction_number)
        if memo is not None:
            return Appended(memo.offset, memo.offset, append_time, state.log_start_offset, duplicate=True)
        self._append_marker(
            memoryview(batch),
            header,
            facts,
            leader_epoch,
            append_time,
            now_ms,
            transaction_version,
            transaction_number,
        )
        return Appended(offset, offset, append_time, state.log_start_offset)

    def _append_marker(
        self,
        batch: memoryview,
        header: BatchHeader,
        marker: Marker,
        leader_epoch: int,
        append_time: int,
        now_ms: int,
        transaction_version: int,
        transaction_number: int = NO_NUMBER,
    ) -> None:
        state = self._state
        producer_id, epoch = header.producer_id, header.producer_epoch
        state.producers.check_marker(producer_id, epoch, marker.coordinator_epoch, transaction_version)
        offset = state.log_end_offset
        self._append_one(batch, header, leader_epoch, append_time, now_ms)
        ended = state.producers.record_marker(
            producer_id,
            epoch,
            marker.coordinator_epoch,
            offset,
            now_ms,
            transaction_number=transaction_number,
        )
        if ended is not None and not marker.commit:
            entry = AbortedTransaction(producer_id, ended.first_offset, offset, ended.last_stable_offset)
            try:
                state.segments.active.txn_index.append(entry)
            except (OSError, CorruptRecordBatch) as error:
                raise state.failed("writing", error) from error

    def _append_one(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, append_time: int, now_ms: int
    ) -> None:
        state = self._state
        base_offset = state.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        if append_time < 0:
            buffers = place(batch, header, base_offset, leader_epoch)
        else:
            buffers = place_at_time(batch, header, base_offset, leader_epoch, append_time)
            timestamp = append_time
        size = len(batch)
        if size > state.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes is larger than segment.bytes={state.config.segment_bytes}",
            )
        try:
            segment = segment_for(state, self._flusher, size, last_offset, timestamp, now_ms)
            segment.append(
                buffers, size, base_offset, last_offset, timestamp, state.config.index_interval_bytes
            )
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("writing", error) from error
        state.log_end_offset = last_offset + 1
        flusher = self._flusher
        if now_ms < flusher.unflushed_since_ms:
            flusher.unflushed_since_ms = now_ms
        if leader_epoch > state.epochs.latest:
            state.epochs.assign(leader_epoch, base_offset)

    def _append_several(
        self,
        batches: Buffer,
        headers: Sequence[BatchHeader],
        leader_epoch: int,
        append_time: int,
        now_ms: int,
    ) -> None:
        if any(header.producer_id >= 0 for header in headers):
            raise error_for(ErrorCode.INVALID_RECORD, "a batch of an idempotent producer has to come alone")
        view, start = memoryview(batches), 0
        for header in headers:
            end = start + header.size
            self._append_one(view[start:end], header, leader_epoch, append_time, now_ms)
            start = end

    def _duplicate(self, memo: BatchMemo, append_time: int) -> Appended:
        written_at = memo.timestamp if append_time >= 0 else -1
        return Appended(
            memo.base_offset, memo.last_offset, written_at, self._state.log_start_offset, duplicate=True
        )


def _marker_in(batch: Buffer) -> Marker:
    try:
        return parse_marker(batch)
    except CorruptRecordBatch as error:
        raise error_for(ErrorCode.INVALID_RECORD, f"no transaction marker: {error}") from None
