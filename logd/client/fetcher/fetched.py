"""What one fetch brought of one partition: whole batches, and the ways to read them."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator

from logd.client.cluster.metadata import TopicPartition
from logd.records import ABORT, BatchHeader, Record, check_crc, decode_records, iter_batches, parse_control
from logd.wire import NO_UUID

_BASE_AND_LENGTH = struct.Struct(">qi")
_LAST_DELTA = struct.Struct(">i")
_LOG_OVERHEAD = 12
_LAST_DELTA_AT = 23
_HEADER_SIZE = 61


class Fetched:
    """Whole record batches of one partition, as they came from the broker, still compressed.

    `position`: the first offset wanted (the first batch may begin before it).
    `next_offset`: where the next fetch goes on. `buffer`: a memoryview of whole batches only.
    `high_watermark`, `last_stable_offset`, `log_start_offset`: as the broker gave them (-1: not known).
    `aborted`: (producer id, first offset) of aborted transactions, for read_committed.
    `topic_id`: 16 bytes, zeros before Fetch v13.
    """

    __slots__ = (
        "aborted",
        "buffer",
        "committed_only",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "next_offset",
        "position",
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
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        aborted: tuple[tuple[int, int], ...] = (),
        topic_id: bytes = NO_UUID,
        committed_only: bool = False,
    ) -> None:
        self.tp = tp
        self.position = position
        self.next_offset = next_offset
        self.buffer = buffer
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted
        self.topic_id = topic_id
        self.committed_only = committed_only

    def __repr__(self) -> str:
        return f"Fetched({self.tp}, {self.position} to {self.next_offset}, {len(self.buffer)} bytes)"

    def batches(self, *, control: bool = False) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Each batch's header and bytes, still compressed, in offset order.

        Control batches are left out unless `control`; those of aborted transactions are left out for
        read_committed. The first batch may hold records before `position`. CRCs are not checked.
        """
        aborted = _Aborted(self.aborted) if self.committed_only and self.aborted else None
        for pos, header in iter_batches(self.buffer):
            batch = self.buffer[pos : pos + header.size]
            if aborted is not None and aborted.includes(header, batch):
                continue
            if header.next_offset > self.position and (control or not header.is_control):
                yield header, batch

    def records(self) -> list[Record]:
        """Decoded records from `position` on: no control records, none aborted for read_committed.

        Raises CorruptRecordBatch where a batch's CRC or contents are wrong.
        """
        records: list[Record] = []
        for header, batch in self.batches():
            check_crc(batch, 0, header)
            decoded = decode_records(batch)
            if header.base_offset < self.position:
                decoded = [record for record in decoded if record[0] >= self.position]
            if records:
                records += decoded
            else:
                records = decoded
        return records


class _Aborted:
    """Which producers' transactions are aborted at the offset reached, as batches go by in order."""

    def __init__(self, aborted: tuple[tuple[int, int], ...]) -> None:
        self._coming = deque(sorted(aborted, key=lambda entry: entry[1]))
        self._producers: set[int] = set()

    def includes(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch is data of an aborted transaction; ask for every batch, in order."""
        while self._coming and self._coming[0][1] <= header.last_offset:
            self._producers.add(self._coming.popleft()[0])
        if header.producer_id not in self._producers or not header.is_transactional:
            return False
        if not header.is_control:
            return True
        records = decode_records(batch)
        if records and parse_control(records[0][2] or b"")[1] == ABORT:
            self._producers.discard(header.producer_id)
        return False


def whole_batches(buffer: memoryview) -> tuple[int, int]:
    """Bytes of `buffer` that are whole batches, and the offset after the last of them (-1 if there is none).

    One step per batch, no header objects: this is on the way of every fetch.
    """
    pos, last, last_base, end = 0, -1, 0, len(buffer)
    while end - pos >= _HEADER_SIZE:
        base, length = _BASE_AND_LENGTH.unpack_from(buffer, pos)
        after = pos + _LOG_OVERHEAD + length
        if after > end or length < _HEADER_SIZE - _LOG_OVERHEAD:
            break
        last, pos, last_base = pos, after, base
    if last < 0:
        return 0, -1
    return pos, last_base + int(_LAST_DELTA.unpack_from(buffer, last + _LAST_DELTA_AT)[0]) + 1
