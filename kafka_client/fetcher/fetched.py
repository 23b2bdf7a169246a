"""What one fetch brought of one partition: whole batches, and the ways to read them."""

from __future__ import annotations

import struct
import sys
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, cast

from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.fetcher.parts import PART_RECORDS, OnUnreadable, Part, read_parts
from kafka_client.records import (
    ABORT,
    BatchHeader,
    Record,
    decode_records,
    parse_control,
    read_base_offset,
    read_header,
)
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import NO_UUID

_LENGTH_AND_COUNT = struct.Struct(">8xi45xi")
_LAST = struct.Struct(">q4xi7xi")
"""Of the last batch: base offset, partition leader epoch, last offset delta."""
_LOG_OVERHEAD = 12
_HEADER_SIZE = 61
OWNED_SHARE = 2
"""Records that are less than one part in so many of the response they came in are copied out of it."""


class Fetched:
    """Whole record batches of one partition, as they came from the broker, still compressed.

    `position`: the first offset wanted (the first batch may begin before it).
    `next_offset`: where the next fetch goes on; `leader_epoch`: that of the batch before it (-1: not known),
    to be committed with it. `buffer`: a memoryview of whole batches only. What it is a view of stays in
    memory as long as it does, and is at most `OWNED_SHARE` times as large.
    `record_count`: as the batches' headers say; control records and those before `position` count too.
    `high_watermark`, `last_stable_offset`, `log_start_offset`: as the broker gave them (-1: not known).
    `aborted`: (producer id, first offset) of aborted transactions, for read_committed.
    `topic_id`: 16 bytes, zeros before Fetch v13.
    `damage`: why the broker cannot read these offsets, which `buffer` has nothing of; empty as a rule.
    """

    __slots__ = (
        "aborted",
        "buffer",
        "committed_only",
        "damage",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "next_offset",
        "position",
        "record_count",
        "topic_id",
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        position: int,
        next_offset: int,
        buffer: memoryview,
        *,
        record_count: int = 0,
        leader_epoch: int = -1,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        aborted: tuple[tuple[int, int], ...] = (),
        topic_id: bytes = NO_UUID,
        committed_only: bool = False,
        damage: str = "",
    ) -> None:
        self.tp = tp
        self.position = position
        self.next_offset = next_offset
        self.buffer = buffer
        self.record_count = record_count
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted
        self.topic_id = topic_id
        self.committed_only = committed_only
        self.damage = damage

    def __repr__(self) -> str:
        return f"Fetched({self.tp}, {self.position} to {self.next_offset}, {len(self.buffer)} bytes)"

    def cut(self, max_bytes: int, max_records: int) -> tuple[Fetched, Fetched | None]:
        """This in two, between batches: about so much, but one batch at least, and the rest if there is one.

        Nothing is copied. Transactions that were aborted in the first part do not count for the second.
        """
        if len(self.buffer) <= max_bytes and self.record_count <= max_records:
            return self, None
        size = first_size(self.buffer, max_bytes, max_records)
        if size == len(self.buffer):
            return self, None
        first, rest = self.buffer[:size], self.buffer[size:]
        aborted = self.aborted
        if aborted:
            seen = _Aborted(aborted)
            for header, batch in self._part(self.position, first, whole_batches(first), ())._headers(_ignore):
                seen.includes(header, batch)
            aborted = seen.remaining()
        found = whole_batches(first)
        behind = WholeBatches(
            len(rest), self.next_offset, self.record_count - found.record_count, self.leader_epoch
        )
        return (
            self._part(self.position, first, found, self.aborted),
            self._part(found.next_offset, rest, behind, aborted),
        )

    def _part(
        self, position: int, buffer: memoryview, found: WholeBatches, aborted: tuple[tuple[int, int], ...]
    ) -> Fetched:
        return Fetched(
            self.tp,
            position,
            found.next_offset,
            buffer,
            record_count=found.record_count,
            leader_epoch=found.leader_epoch,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            log_start_offset=self.log_start_offset,
            aborted=aborted,
            topic_id=self.topic_id,
            committed_only=self.committed_only,
        )

    def batches(
        self, *, control: bool = False, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield each batch's header and bytes, still compressed, in offset order.

        Control batches are left out unless `control`; those of aborted transactions are left out for
        read_committed. The first batch may hold records before `position`. CRCs are not checked.

        Raises UnreadableBatch where a header makes no sense. With `on_unreadable` such a batch is given to it
        and passed over.
        """
        aborted = _Aborted(self.aborted) if self.committed_only and self.aborted else None
        for header, batch in self._headers(on_unreadable):
            if aborted is not None and aborted.includes(header, batch):
                continue
            if header.next_offset > self.position and (control or not header.is_control):
                yield header, batch

    def _headers(self, on_unreadable: OnUnreadable | None) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield each batch whose header makes sense. A batch's length says where the next one begins."""
        pos, due = 0, self.position
        if self.damage:
            _pass_over(self._unreadable(due, self.next_offset, self.damage), on_unreadable)
        while pos < len(self.buffer):
            size = _LOG_OVERHEAD + _LENGTH_AND_COUNT.unpack_from(self.buffer, pos)[0]
            batch = self.buffer[pos : pos + size]
            pos += size
            try:
                header = read_header(batch)
            except CorruptRecordBatch as error:
                after = read_base_offset(self.buffer, pos) if pos < len(self.buffer) else self.next_offset
                _pass_over(self._unreadable(due, after, str(error)), on_unreadable, error)
                continue
            due = header.next_offset
            yield header, batch

    def _unreadable(self, first: int, after: int, reason: str) -> UnreadableBatch:
        """Return the error of a batch whose header does not say which offsets it holds."""
        count = max(after - first, 1)
        return UnreadableBatch(
            *self.tp, first_offset=first, last_offset=first + count - 1, record_count=count, reason=reason
        )

    def parts(
        self, max_records: int = PART_RECORDS, *, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[Part]:
        """Yield the records in parts of bounded size; see `read_parts`."""
        return read_parts(self, max_records, on_unreadable)

    def records(self) -> list[Record]:
        """Return all records from `position` on: no control records, none aborted for read_committed.

        A few KB of a compressed batch may hold millions of records: `parts` gives so many at a time. Raises
        UnreadableBatch.
        """
        return [record for part in self.parts(sys.maxsize) for record in part.records]


def _ignore(unreadable: UnreadableBatch) -> None:
    """Leave it to who reads the batches."""


def _pass_over(
    unreadable: UnreadableBatch, on_unreadable: OnUnreadable | None, cause: Exception | None = None
) -> None:
    if on_unreadable is None:
        raise unreadable from cause
    on_unreadable(unreadable)


class _Aborted:
    """Which producers' transactions are aborted at the offset reached, as batches go by in order."""

    def __init__(self, aborted: tuple[tuple[int, int], ...]) -> None:
        self._coming = deque(sorted(aborted, key=lambda entry: entry[1]))
        self._producers: set[int] = set()

    def remaining(self) -> tuple[tuple[int, int], ...]:
        """The transactions whose abort marker has not come by yet."""
        return tuple((producer, -1) for producer in self._producers) + tuple(self._coming)

    def includes(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch is data of an aborted transaction; ask for every batch, in order."""
        while self._coming and self._coming[0][1] <= header.last_offset:
            self._producers.add(self._coming.popleft()[0])
        if header.producer_id not in self._producers or not header.is_transactional:
            return False
        if not header.is_control:
            return True
        if _is_abort_marker(batch):
            self._producers.discard(header.producer_id)
        return False


def _is_abort_marker(batch: memoryview) -> bool:
    """Return True if a control batch ends an aborted transaction, also if it cannot be read any more.

    A producer's first marker after the beginning of an aborted transaction is the one that aborted it.
    """
    try:
        records = decode_records(batch)
        return bool(records) and parse_control(records[0][2])[1] == ABORT
    except CorruptRecordBatch:
        return True


class WholeBatches(NamedTuple):
    """What of a buffer is whole batches: bytes, the offset after the last (-1 if there is none), records by
    the headers, the last one's leader epoch.
    """

    size: int
    next_offset: int
    record_count: int
    leader_epoch: int


def whole_batches(buffer: memoryview) -> WholeBatches:
    """Measure the whole batches at the beginning of `buffer`.

    One step per batch, no header objects: this is on the way of every fetch.
    """
    pos, last, records, end = 0, -1, 0, len(buffer)
    while end - pos >= _HEADER_SIZE:
        length, count = _LENGTH_AND_COUNT.unpack_from(buffer, pos)
        after = pos + _LOG_OVERHEAD + length
        if after > end or length < _HEADER_SIZE - _LOG_OVERHEAD:
            break
        last, pos = pos, after
        records += count
    if last < 0:
        return WholeBatches(0, -1, 0, -1)
    base, epoch, delta = _LAST.unpack_from(buffer, last)
    return WholeBatches(pos, base + delta + 1, records, epoch)


def first_size(buffer: memoryview, max_bytes: int, max_records: int) -> int:
    """Bytes of the first of `buffer`'s whole batches: as many as keep to both limits, one at least."""
    pos, records, end = 0, 0, len(buffer)
    while pos < end:
        length, count = _LENGTH_AND_COUNT.unpack_from(buffer, pos)
        after = pos + _LOG_OVERHEAD + length
        records += count
        if pos and (after > max_bytes or records > max_records):
            break
        pos = after
    return pos


def owned(records: memoryview) -> memoryview:
    """`records`, copied if they are a small part of what they are a view of: it would all stay in memory."""
    if len(records) * OWNED_SHARE < len(cast("bytes", records.obj)):
        return memoryview(bytes(records))
    return records
