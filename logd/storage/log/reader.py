"""Reading a log: slices of whole batches, records by their time, aborted transactions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from logd.errors import CorruptRecordBatch
from logd.records.header import iter_batches
from logd.records.slice import FileSlice
from logd.storage.disk import read_slice
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.log.state import LogState

CHUNK_BYTES = 1024 * 1024

_first_offset = attrgetter("first_offset")


class TimestampOffset(NamedTuple):
    """A record found by its timestamp (ms)."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogReader(LogState):
    """The part of a log that reads."""

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

    def is_recent(self, offset: int) -> bool:
        """Whether what stands at `offset` was appended lately, so that its pages are in memory."""
        return self._segments.active.is_recent(offset)

    def end_of(self, piece: FileSlice, offset: int) -> int:
        """An offset that no record reaches in `piece`, which `read` has just given for `offset`: not far
        behind its last record.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        segments = self._segments
        try:
            for index in range(segments.index_of(offset), len(segments.row)):
                segment = segments.row[index]
                if segment.file.descriptor is piece.owner:
                    end = segment.offset_behind(piece.position + piece.length)
                    return segments.end_of(index, self.log_end_offset) if end is None else end
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("reading", error) from error
        return self.log_end_offset

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

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records in [start, end), by first offset, for readers of committed
        records.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        found: list[AbortedTransaction] = []
        row = self._segments.row
        try:
            for index in range(self._segments.index_of(start), len(row)):
                if row[index].txn_index.collect(start, end, found):
                    break
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("reading", error) from error
        found.sort(key=_first_offset)
        return found
