"""The batches of one partition in one fetch response, and the ways to read them."""

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
"""The base offset, partition leader epoch and last offset delta of the last batch."""
_LOG_OVERHEAD = 12
_HEADER_SIZE = 61
OWNED_SHARE = 2
"""Records that are less than this part of the response (one in ...) are copied out of it."""


class Fetched:
    """Whole record batches of one partition, as the broker sent them, still compressed.

    `position`: the requested offset (the first batch may start before it). `next_offset`: where the next
    fetch continues. `leader_epoch`: that of the batch before `next_offset` (-1: unknown), to be committed
    with it. `buffer`: a memoryview of whole batches only. It keeps its underlying object in memory, which is
    at most `OWNED_SHARE` times as large.

    `record_count`: by the batches' headers; control records and those before `position` count too.
    `high_watermark`, `last_stable_offset`, `log_start_offset`: from the broker (-1: unknown). `aborted`:
    (producer id, first offset) of aborted transactions, for read_committed. `topic_id`: 16 bytes, zeros
    before Fetch v13. `damage`: why the broker cannot read these offsets, for which `buffer` is empty; usually
    "".
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
        """Split this between batches: about as much as the limits allow, at least one batch, and the rest, if
        any.

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
            transactions = _Aborted(aborted)
            for header, batch in self._part(self.position, first, whole_batches(first), ())._headers(_ignore):
                transactions.includes(header, batch)
            aborted = transactions.remaining()
        measured = whole_batches(first)
        behind = WholeBatches(
            len(rest), self.next_offset, self.record_count - measured.record_count, self.leader_epoch
        )
        return (
            self._part(self.position, first, measured, self.aborted),
            self._part(measured.next_offset, rest, behind, aborted),
        )

    def _part(
        self, position: int, buffer: memoryview, measured: WholeBatches, aborted: tuple[tuple[int, int], ...]
    ) -> Fetched:
        return Fetched(
            self.tp,
            position,
            measured.next_offset,
            buffer,
            record_count=measured.record_count,
            leader_epoch=measured.leader_epoch,
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

        Raises UnreadableBatch for an invalid header. With `on_unreadable` such a batch is passed to it and
        skipped.
        """
        aborted = _Aborted(self.aborted) if self.committed_only and self.aborted else None
        for header, batch in self._headers(on_unreadable):
            if aborted is not None and aborted.includes(header, batch):
                continue
            if header.next_offset > self.position and (control or not header.is_control):
                yield header, batch

    def _headers(self, on_unreadable: OnUnreadable | None) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield each batch with a valid header. A batch's length says where the next one starts."""
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
        """Return the error of a batch whose header does not say which offsets it has."""
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
        """Return all records from `position` on: no control records, and no aborted ones for read_committed.

        A few KB of a compressed batch may hold millions of records: `parts` returns a bounded number at a
        time. Raises UnreadableBatch.
        """
        return [record for part in self.parts(sys.maxsize) for record in part.records]


def _ignore(unreadable: UnreadableBatch) -> None:
    """Ignore an unreadable batch: the reader of the batches reports it."""


def _pass_over(
    unreadable: UnreadableBatch, on_unreadable: OnUnreadable | None, cause: Exception | None = None
) -> None:
    if on_unreadable is None:
        raise unreadable from cause
    on_unreadable(unreadable)


class _Aborted:
    """The producers with an aborted transaction at the current offset, while batches pass in order."""

    def __init__(self, aborted: tuple[tuple[int, int], ...]) -> None:
        self._coming = deque(sorted(aborted, key=lambda entry: entry[1]))
        self._producers: set[int] = set()

    def remaining(self) -> tuple[tuple[int, int], ...]:
        """Return the transactions whose abort marker has not passed yet."""
        return tuple((producer, -1) for producer in self._producers) + tuple(self._coming)

    def includes(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return True if the batch is data of an aborted transaction; call it for every batch, in order."""
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
    """Return True if a control batch ends an aborted transaction, even if it cannot be read any more.

    A producer's first marker after the start of an aborted transaction is the one that aborted it.
    """
    try:
        records = decode_records(batch)
        return bool(records) and parse_control(records[0][2])[1] == ABORT
    except CorruptRecordBatch:
        return True


class WholeBatches(NamedTuple):
    """The whole batches in a buffer: bytes, the offset after the last (-1 if there is none), records, and
    epoch.

    The number of records is by the headers; the leader epoch is the last batch's.
    """

    size: int
    next_offset: int
    record_count: int
    leader_epoch: int


def whole_batches(buffer: memoryview) -> WholeBatches:
    """Measure the whole batches at the start of `buffer`.

    It takes one step per batch, without header objects, since every fetch comes here.
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
    """Return the bytes of the first whole batches in `buffer`: as many as both limits allow, at least one."""
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
    """Return `records`, copied if they are a small part of their underlying object: it would all stay in
    memory.
    """
    if len(records) * OWNED_SHARE < len(cast("bytes", records.obj)):
        return memoryview(bytes(records))
    return records
