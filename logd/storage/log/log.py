"""One partition's log: segments in a row, written at the end, read anywhere.

Appends and reads are synchronous and wait for no disk but the page cache. What has to wait (fsync, unlink)
is made here as a job (`jobs`) and run elsewhere. Reading is `reader`'s, flushing `flusher`'s; opening
and recovery are `loader`'s; who may append and read up to where (leader epochs, high watermark) is the
broker's to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError, error_for
from logd.records.control import build_marker, parse_marker
from logd.records.header import CONTROL_BIT, BatchHeader, Buffer, iter_batches, read_header
from logd.storage.health import Health
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.jobs import Deletion
from logd.storage.log.compaction import LogCompaction
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.recovery import rebuild_producers
from logd.storage.log.retention import removable, roll_is_due
from logd.storage.placement import place, place_at_time
from logd.storage.preallocation import preallocate
from logd.storage.producers.state import BatchMemo
from logd.storage.segment import Segment

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


class Log(LogCompaction, LogFlusher):
    """One partition's log. Made by `LogFolder`; one owner calls everything.

    `config` may be replaced while running. Everything below `recovery_point` is known to be on the disk, with
    its indexes and a producer snapshot near it; the records below `synced_offset` are, recovery finds them.
    After a failed write or fsync every call raises KafkaError(KAFKA_STORAGE_ERROR) until the folder is opened
    again.
    """

    # Writing

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
        does not count. Does not fsync: see `needs_flush`. Raises KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, RECORD_LIST_TOO_LARGE, INVALID_RECORD, KAFKA_STORAGE_ERROR
        (the disk failed and the folder is offline).
        """
        if self._health.failure is not None:
            raise self._health.error()
        if headers is None:
            headers = [header for _, header in iter_batches(batches)]
        append_time = now_ms if self.config.message_timestamp_type == APPEND_TIME else -1
        base_offset = self.log_end_offset
        header = headers[0]
        if len(headers) > 1:
            self._append_several(batches, headers, leader_epoch, append_time, now_ms)
        elif header.producer_id < 0:
            self._append_one(memoryview(batches), header, leader_epoch, append_time, now_ms)
        elif header.attributes & CONTROL_BIT:
            self._append_marker(memoryview(batches), header, leader_epoch, append_time, now_ms, 0)
        else:
            if from_client:
                memo = self.producers.check(header)
                if memo is not None:
                    return self._duplicate(memo, append_time)
            else:
                self.producers.check_unsequenced(header)
            self._append_one(memoryview(batches), header, leader_epoch, append_time, now_ms)
            self.producers.record(header, base_offset, now_ms)
        return Appended(base_offset, self.log_end_offset - 1, append_time, self.log_start_offset)

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
    ) -> Appended:
        """End the producer's transaction with a marker, which is written even if none is open here.

        From transaction version 2 on the marker's epoch is newer than that of the transaction's records
        (KIP-890), and the producer goes on with it. Raises KafkaError: INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        if self._health.failure is not None:
            raise self._health.error()
        batch = build_marker(
            commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        append_time = now_ms if self.config.message_timestamp_type == APPEND_TIME else -1
        offset = self.log_end_offset
        self._append_marker(
            memoryview(batch), read_header(batch), leader_epoch, append_time, now_ms, transaction_version
        )
        return Appended(offset, offset, append_time, self.log_start_offset)

    def replicated_to(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is committed: transactions whose marker it passed are stable."""
        self.producers.replicated_to(high_watermark)

    def _append_marker(
        self,
        batch: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        append_time: int,
        now_ms: int,
        transaction_version: int,
    ) -> None:
        producer_id, epoch = header.producer_id, header.producer_epoch
        try:
            marker = parse_marker(batch)
        except CorruptRecordBatch as error:
            raise error_for(ErrorCode.INVALID_RECORD, f"no transaction marker: {error}") from None
        self.producers.check_marker(producer_id, epoch, marker.coordinator_epoch, transaction_version)
        offset = self.log_end_offset
        self._append_one(batch, header, leader_epoch, append_time, now_ms)
        ended = self.producers.record_marker(producer_id, epoch, marker.coordinator_epoch, offset, now_ms)
        if ended is not None and not marker.commit:
            entry = AbortedTransaction(producer_id, ended.first_offset, offset, ended.last_stable_offset)
            try:
                self._segments.active.txn_index.append(entry)
            except (OSError, CorruptRecordBatch) as error:
                raise self._failed("writing", error) from error

    def _append_one(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, append_time: int, now_ms: int
    ) -> None:
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        if append_time < 0:
            buffers = place(batch, header, base_offset, leader_epoch)
        else:
            buffers = place_at_time(batch, header, base_offset, leader_epoch, append_time)
            timestamp = append_time
        size = len(batch)
        try:
            segment = self._segment_for(size, last_offset, timestamp, now_ms)
            segment.append(
                buffers, size, base_offset, last_offset, timestamp, self.config.index_interval_bytes
            )
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("writing", error) from error
        self.log_end_offset = last_offset + 1
        if now_ms < self._unflushed_since_ms:
            self._unflushed_since_ms = now_ms
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)

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
        return Appended(memo.base_offset, memo.last_offset, written_at, self.log_start_offset, duplicate=True)

    def _segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The active segment, after rolling it if it is full or too old for a batch."""
        segment, config = self._segments.active, self.config
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes is larger than segment.bytes={config.segment_bytes}",
            )
        if segment.size and (
            segment.size + size > config.segment_bytes
            or roll_is_due(segment, config, max_timestamp, now_ms)
            or not segment.fits(last_offset, config.index_interval_bytes, config.segment_index_bytes)
        ):
            segment = self._roll(now_ms)
        if config.preallocate and not segment.size:
            preallocate(segment.file, config.segment_bytes)
        return segment

    def _roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the log end offset."""
        if self.config.preallocate:
            self._segments.active.file.truncate(self._segments.active.size)  # lets go of what was not used
        self._snapshots.take(self.log_end_offset, self.producers)
        self._snapshot_at = 0
        self._names_changed()
        return self._segments.add(self.log_end_offset, now_ms)

    # Shortening

    def delete_records_before(self, offset: int) -> list[Deletion]:
        """Raise the log start offset to `offset` (DeleteRecords); segments wholly below it go.

        The folder's next checkpoint keeps it. The deletions are to be run (in a thread) after their delay.
        Raises OffsetOutOfRange, KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        if offset > self.log_end_offset:
            raise self._out_of_range(offset)
        if offset <= self.log_start_offset:
            return []
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        return self._drop_oldest(self._segments.index_of(offset))

    def apply_retention(self, now_ms: int, *, upper_bound: int | None = None) -> list[Deletion]:
        """Drop old segments by retention.ms, retention.bytes and log start offset, all below `upper_bound`
        (the high watermark). An open transaction does not hold them back, as in Apache Kafka: one that hangs
        must not fill the disk.

        The deletions are to be run (in a thread) after their delay. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        try:
            count = removable(
                self._segments,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                upper_bound=self.log_end_offset if upper_bound is None else upper_bound,
                now_ms=now_ms,
            )
            if count == len(self._segments.row):
                self._roll(now_ms)
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("applying retention", error) from error
        deletions = self._drop_oldest(count)
        if self._segments.row[0].base_offset > self.log_start_offset:
            self.log_start_offset = self._segments.row[0].base_offset
            self.epochs.truncate_from_start(self.log_start_offset)
        return deletions

    def truncate_to(self, offset: int, now_ms: int) -> list[Deletion]:
        """Drop everything from the batch holding `offset` on: what a leader never had.

        Not while a flush is running. Write the folder's checkpoint before appending again: the recovery point
        on the disk may be too high now. The deletions are to be run (in a thread) after their delay.
        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        if offset >= self.log_end_offset:
            return []
        try:
            paths = self._segments.cut(offset, now_ms)
            self.log_end_offset = self._segments.active.next_offset()
            self.recovery_point = min(self.recovery_point, self.log_end_offset)
            self.synced_offset = self.sync_started_to = min(self.synced_offset, self.log_end_offset)
            self._snapshot_at = 0
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
            self.epochs.truncate_from_end(self.log_end_offset)
            self.producers = rebuild_producers(self._segments, self._snapshots, self.log_end_offset, now_ms)
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("truncating", error) from error
        return self._deletions(paths)

    def _drop_oldest(self, count: int) -> list[Deletion]:
        """Take out the oldest segments, with the producer snapshots before what is left."""
        if not count:
            return []
        renames = self._segments.drop_oldest(count)
        renames += self._snapshots.drop_before(self._segments.row[0].base_offset)
        delay_ms = self.config.file_delete_delay_ms
        return [Deletion(self._disk, [], delay_ms, renames=renames, health=self._health)]

    def _deletions(self, paths: list[Path]) -> list[Deletion]:
        return [Deletion(self._disk, paths, self.config.file_delete_delay_ms)] if paths else []

    # Letting go

    def retire(self) -> None:
        """The log is deleted: whoever still calls it gets KafkaError(KAFKA_STORAGE_ERROR), and no file is
        touched, since a log of the same name may have taken its place.
        """
        self.release()
        self._health = Health(self.folder)
        self._health.failure = f"{self.folder.name} was deleted"

    def expire_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers not heard of for `expiration_ms` (producer.id.expiration.ms); how many."""
        return self.producers.expire(now_ms, expiration_ms)
