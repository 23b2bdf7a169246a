"""One partition's log: segments in a row, written at the end, read anywhere.

    log start offset ≤ log end offset; recovery point ≤ log end offset

Appends and reads are synchronous and wait for no disk but the page cache. What has to wait (fsync, unlink) is
made here as a job (`jobs`) and run elsewhere. Opening and recovery are `loader`'s; who may append and read up
to where (leader epochs, high watermark) is the broker's to say.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from logd.config.topic import TopicConfig
from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError, OffsetOutOfRange, error_for
from logd.records.header import BatchHeader, Buffer, iter_batches
from logd.records.slice import FileSlice
from logd.storage.disk import Disk, File, read_slice
from logd.storage.epochs import LeaderEpochs
from logd.storage.health import Health
from logd.storage.jobs import Deletion, Flush
from logd.storage.names import LEADER_EPOCHS
from logd.storage.placement import place, place_at_time
from logd.storage.producers import BatchMemo, ProducerState
from logd.storage.recovery import rebuild_producers
from logd.storage.retention import removable
from logd.storage.segment import Segment
from logd.storage.segments import Segments
from logd.storage.snapshots import Snapshots

APPEND_TIME = "LogAppendTime"
CHUNK_BYTES = 1024 * 1024
NEVER = 2**63 - 1


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


class TimestampOffset(NamedTuple):
    """A record found by its timestamp (ms)."""

    timestamp: int
    offset: int
    leader_epoch: int


class Log:
    """One partition's log. Made by `LogFolder`; one owner calls everything.

    `config` may be replaced while running. Everything below `recovery_point` is known to be on the disk.
    After a failed write or fsync every call raises KafkaError(KAFKA_STORAGE_ERROR) until the folder is opened
    again.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        folder: Path,
        config: TopicConfig,
        *,
        disk: Disk,
        health: Health,
        segments: Segments,
        snapshots: Snapshots,
        producers: ProducerState,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        topic_id: bytes | None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.folder = folder
        self.config = config
        self.topic_id = topic_id
        self.producers = producers
        self.epochs = epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self._segments = segments
        self._disk = disk
        self._health = health
        self._snapshots = snapshots
        self._unsynced_snapshots: list[File] = []
        self._unflushed_since_ms = NEVER
        self._flushing = threading.Lock()

    # Writing

    def append(
        self, batches: Buffer, leader_epoch: int, now_ms: int, *, headers: Sequence[BatchHeader] | None = None
    ) -> Appended:
        """Append validated whole batches (CRC checked); offsets are assigned from the log end offset on.

        `headers`: pass them if already read. `batches` itself is not changed and not kept. A batch of an
        idempotent producer has to come alone. Does not fsync: see `needs_flush`. Raises KafkaError:
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, RECORD_LIST_TOO_LARGE, INVALID_RECORD,
        KAFKA_STORAGE_ERROR (the disk failed and the folder is offline).
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
        else:
            memo = self.producers.check(header)
            if memo is not None:
                return self._duplicate(memo, append_time)
            self._append_one(memoryview(batches), header, leader_epoch, append_time, now_ms)
            self.producers.record(header, base_offset, now_ms)
        return Appended(base_offset, self.log_end_offset - 1, append_time, self.log_start_offset)

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
            or segment.open_for(max_timestamp, now_ms) > config.segment_ms
            or not segment.fits(last_offset, config.index_interval_bytes, config.segment_index_bytes)
        ):
            return self._roll(now_ms)
        return segment

    def _roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the log end offset."""
        snapshot = self._snapshots.take(self.log_end_offset, self.producers)
        self._unsynced_snapshots.append(snapshot)
        return self._segments.add(self.log_end_offset, now_ms)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int | None = None, min_one_batch: bool = True
    ) -> FileSlice | None:
        """Whole batches from the one holding `offset`, below `upper_bound`; None if there are none (yet).

        At most `max_bytes`, except that the first batch is returned whole if `min_one_batch`. Keep the slice
        itself until it is sent. Raises OffsetOutOfRange, KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise self._out_of_range(offset)
        if upper_bound is None or upper_bound > end:
            upper_bound = end
        if offset >= upper_bound:
            return None
        segment = self._segments.active
        try:
            if upper_bound == end and offset >= segment.base_offset:
                return segment.read(offset, max_bytes, None, min_one_batch)
            return self._segments.read(offset, max_bytes, upper_bound, end, min_one_batch)
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("reading", error) from error

    def batches(self, start: int, end: int | None = None) -> Iterator[memoryview]:
        """Chunks of whole batches of [start, end), for loading a coordinator's partition.

        Raises OffsetOutOfRange, KafkaError(KAFKA_STORAGE_ERROR).
        """
        while (piece := self.read(start, CHUNK_BYTES, upper_bound=end)) is not None:
            try:
                chunk = memoryview(read_slice(piece))
            except (OSError, CorruptRecordBatch) as error:
                raise self._failed("reading", error) from error
            for _, header in iter_batches(chunk):
                start = header.next_offset
            yield chunk

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is `timestamp` (ms) or later. Decodes one batch.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        try:
            found = self._segments.find_timestamp(timestamp, self.log_start_offset)
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("reading", error) from error
        return None if found is None else TimestampOffset(*found, self.epochs.epoch_of(found[1]))

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The first record with the largest timestamp (ListOffsets -3); None if there are no timestamps."""
        if self._health.failure is not None:
            raise self._health.error()
        try:
            largest = self._segments.largest_timestamp
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("reading", error) from error
        return self.offset_for_timestamp(largest) if largest >= 0 else None

    # Epochs

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch written, -1 if none."""
        return self.epochs.latest

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) if unknown (KIP-101, KIP-279)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch the record at `offset` was written in, -1 if unknown."""
        return self.epochs.epoch_of(offset)

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
        """Drop old segments by retention.ms, retention.bytes and log start offset, all below `upper_bound`.

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
        try:
            paths = self._segments.drop_oldest(count)
            paths += self._snapshots.drop_before(self._segments.row[0].base_offset)
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("deleting segments", error) from error
        return self._deletions(paths)

    def _deletions(self, paths: list[Path]) -> list[Deletion]:
        return [Deletion(self._disk, paths, self.config.file_delete_delay_ms)] if paths else []

    # Durability

    def needs_flush(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms ask for a flush, before the last append is acknowledged."""
        unflushed = self.log_end_offset - self.recovery_point
        return unflushed > 0 and (
            unflushed >= self.config.flush_messages
            or now_ms - self._unflushed_since_ms >= self.config.flush_ms
        )

    @property
    def is_flushed(self) -> bool:
        """Whether the disk has all there is."""
        return not (
            self.log_end_offset > self.recovery_point or self.epochs.dirty or self._unsynced_snapshots
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
        end = self.log_end_offset
        self._unflushed_since_ms = NEVER
        files = self._unsynced_snapshots
        self._unsynced_snapshots = []
        try:
            # From the segment of the last flushed record: rolling it has added to its indexes since.
            for segment in self._segments.row[self._segments.index_of(self.recovery_point - 1) :]:
                files += segment.save()
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("writing indexes", error) from error
        epochs = (self.folder / LEADER_EPOCHS, self.epochs.encode()) if self.epochs.dirty else None
        self.epochs.dirty = False
        return Flush(self._health, self._disk, self.folder, files, epochs, end, self._flushing)

    def finish_flush(self, flush: Flush) -> None:
        """The flush was run: raise the recovery point."""
        self.recovery_point = max(self.recovery_point, min(flush.end_offset, self.log_end_offset))

    def flush(self) -> None:
        """Flush here and now. Blocks. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        flush = self.start_flush()
        if flush is not None:
            flush.run()
            self.finish_flush(flush)

    def close(self) -> None:
        """Flush, take a producer snapshot, let go of the files. Blocks.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is None:
            try:
                self._segments.active.finish()
                if self.log_end_offset > self._snapshots.latest:
                    self._unsynced_snapshots.append(self._snapshots.take(self.log_end_offset, self.producers))
            except (OSError, CorruptRecordBatch) as error:
                raise self._failed("closing", error) from error
            self.flush()
        self.release()

    def release(self) -> None:
        """Let go of the files as they are; slices given out stay readable."""
        for segment in self._segments.row:
            segment.close()

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

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._segments.size

    def _failed(self, doing: str, error: OSError | CorruptRecordBatch) -> KafkaError:
        """What to raise: a failing disk takes the folder offline, a damaged batch concerns this log alone."""
        if isinstance(error, OSError):
            return self._health.fail(f"{doing} {self.folder.name}", error)
        return error_for(ErrorCode.CORRUPT_MESSAGE, f"{doing} {self.folder.name}: {error}")

    def _out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            message=f"offset {offset} is outside {self.log_start_offset}…{self.log_end_offset}",
            topic=self.topic,
            partition=self.partition,
            offset=offset,
            start=self.log_start_offset,
            end=self.log_end_offset,
        )
