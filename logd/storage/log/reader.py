"""Reading a log: slices of whole batches, records by their time, aborted transactions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.compression import DECOMPRESSED_LIMIT, DecompressedTooLarge
from kafka_client.records.header import CODEC_MASK, iter_batches
from kafka_client.records.slice import FileSlice
from logd.storage.disk import CACHED_ONLY, read_slice
from logd.storage.errors import NotResident
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.log.state import LogState
from logd.storage.timestamp_search import NotSearched, TimestampSearch

CHUNK_BYTES = 1024 * 1024

_first_offset = attrgetter("first_offset")


class TimestampOffset(NamedTuple):
    """A record found by its timestamp (ms)."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogReader:
    """The part of a log that reads."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper_bound: int | None = None,
        min_one_batch: bool = True,
        wants_records: bool = False,
    ) -> FileSlice | None:
        """Return whole batches from the one with `offset`, below `upper_bound`; None if there are none (yet).

        The result has at most `max_bytes`, but the first batch is returned whole if `min_one_batch`. With
        `wants_records` (a consumer) leading batches without records are skipped; a copy of the log needs
        them. Keep the slice itself until it is sent. Raises OffsetOutOfRange and
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        end = state.log_end_offset
        if not state.log_start_offset <= offset <= end:
            raise state.out_of_range(offset)
        if upper_bound is None or upper_bound > end:
            upper_bound = end
        if offset >= upper_bound:
            return None
        segment = state.segments.active
        try:
            if upper_bound == end and offset >= segment.base_offset:
                return segment.read(offset, max_bytes, None, min_one_batch, wants_records)
            return state.segments.read(offset, max_bytes, upper_bound, end, min_one_batch, wants_records)
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("reading", error) from error

    def is_recent(self, offset: int) -> bool:
        """Return True if the batch at `offset` was appended lately, so that its pages are in memory."""
        return self._state.segments.active.is_recent(offset)

    def end_of(self, piece: FileSlice, offset: int) -> int:
        """Return an offset just after the last record of `piece`, which `read` has returned for `offset`.

        The result may be a little above the next offset. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        segments = state.segments
        try:
            for index in range(segments.index_of(offset), len(segments.row)):
                segment = segments.row[index]
                if segment.file.descriptor is piece.owner:
                    end = segment.offset_behind(piece.position + piece.length)
                    return segments.end_of(index, state.log_end_offset) if end is None else end
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("reading", error) from error
        return state.log_end_offset

    def batches(self, start: int, end: int | None = None) -> Iterator[memoryview]:
        """Yield chunks of whole batches of [start, end), to load a coordinator's partition.

        They were read into memory before; a chunk that did not stay there waits for the disk. Raises
        OffsetOutOfRange and KafkaError(KAFKA_STORAGE_ERROR).
        """
        while (piece := self._read_resident(start, end)) is not None:
            try:
                chunk = memoryview(read_slice(piece))
            except (OSError, CorruptRecordBatch) as error:
                raise self._state.failed("reading", error) from error
            for _, header in iter_batches(chunk):
                start = header.next_offset
            yield chunk

    def _read_resident(self, start: int, end: int | None) -> FileSlice | None:
        try:
            with CACHED_ONLY:
                return self.read(start, CHUNK_BYTES, upper_bound=end)
        except NotResident as cold:
            cold.job()
        return self.read(start, CHUNK_BYTES, upper_bound=end)

    def offset_for_timestamp(
        self, timestamp: int, start: int = 0, *, decompressed_max: int = DECOMPRESSED_LIMIT
    ) -> TimestampOffset | None:
        """Return the first record from offset `start` on whose timestamp is `timestamp` (ms) or later.

        Decodes one batch at least. Raises NotSearched if one decompresses to more than `decompressed_max`
        bytes; KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE, INVALID_RECORD if a batch cannot be decoded.
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        start = max(start, state.log_start_offset)
        try:
            for header, batch in state.segments.batches_for_timestamp(timestamp, start):
                search = TimestampSearch(
                    f"{state.topic}-{state.partition}", batch, header, timestamp, start, state.config
                )
                if header.attributes & CODEC_MASK and len(batch) > decompressed_max:
                    raise NotSearched(search)
                try:
                    result = search.run(decompressed_max)
                except DecompressedTooLarge:
                    raise NotSearched(search) from None
                if result is not None:
                    return TimestampOffset(*result, state.epochs.epoch_of(result[1]))
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("reading", error) from error
        return None

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of any record (ms), -1 if there is none. Raises KafkaError."""
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        try:
            return state.segments.largest_timestamp
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("reading", error) from error

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """Return the first record with the largest timestamp; None if there are no timestamps."""
        largest = self.largest_timestamp()
        return self.offset_for_timestamp(largest) if largest >= 0 else None

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start, end), by first offset.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        transactions: list[AbortedTransaction] = []
        row = state.segments.row
        try:
            for index in range(state.segments.index_of(start), len(row)):
                if row[index].txn_index.collect(start, end, transactions):
                    break
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("reading", error) from error
        transactions.sort(key=_first_offset)
        return transactions
