"""The 61-byte header of a record batch (magic 2): reading it, walking batches, checking the CRC.

    offset  bytes  field
    ──────  ─────  ──────────────────────────────────────────────────────────────────
         0      8  base offset              ┐ outside the CRC: the broker overwrites
         8      4  batch length             │ them without touching the rest
        12      4  partition leader epoch   │ (batch length counts from byte 12)
        16      1  magic = 2                ┘
        17      4  CRC-32C of bytes 21…
        21      2  attributes               0–2 codec · 3 log append time · 4 transactional
        23      4  last offset delta             5 control · 6 base timestamp is a delete horizon
        27      8  base timestamp, ms
        35      8  max timestamp, ms
        43      8  producer id, -1 none
        51      2  producer epoch
        53      4  base sequence
        57      4  record count (0 after compaction took them all)
        61      …  records, compressed together

All numbers are big-endian. What follows the header is left to `decode` and `build`.
Source: Kafka's DefaultRecordBatch, KIP-98, KIP-534 (delete horizon).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.compression import Codec
from kafka_client.records.crc import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Where batches are read from. A memoryview has to be one of bytes (format B)."""

HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Bytes in front of what `batch_length` counts."""
MAGIC = 2

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_POSITION = 17
CRC_START = 21
_CRC = struct.Struct(">I")
_CRC_AT = struct.Struct(">17xI")
_BASE = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_SIZE = struct.Struct(">8xi")
_TIMES = struct.Struct(">q")


class BatchHeader(NamedTuple):
    """A batch's header as it stands on the wire; the properties are derived."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody wants of a header

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch had when it was written."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record (wraps at 2^31), -1 without a producer id."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    @property
    def codec(self) -> Codec:
        """How the records are compressed; CorruptRecordBatch if the number is unknown."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise CorruptRecordBatch(f"unknown compression codec {number}")
        return Codec(number)

    @property
    def timestamp_type(self) -> int:
        """0 the records' own create time, 1 log append time (`max_timestamp` counts for all)."""
        return (self.attributes & APPEND_TIME_BIT) >> 3

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """True if the batch holds a control record (a transaction marker), not data."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer(self) -> bool:
        """True if an idempotent producer wrote the batch."""
        return self.producer_id >= 0

    @property
    def delete_horizon(self) -> int | None:
        """When the cleaner may drop the batch's tombstones, ms (KIP-534), or None."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_header(buffer: Buffer, pos: int = 0) -> BatchHeader:
    """Read the header of the batch at `pos`; the rest of the batch need not be in `buffer`.

    Raises CorruptRecordBatch on anything no batch can have, and on less than 61 bytes.
    """
    try:
        header = BatchHeader._make(HEADER.unpack_from(buffer, pos))
    except struct.error:
        raise CorruptRecordBatch(f"{max(len(buffer) - pos, 0)} bytes are no batch header") from None
    if header.magic != MAGIC:
        raise CorruptRecordBatch(f"batch magic {header.magic}, only {MAGIC} is supported")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptRecordBatch(f"batch length {header.batch_length} is less than a header")
    if header.count < 0 or header.last_offset_delta < 0:
        raise CorruptRecordBatch(
            f"batch with count {header.count} and last offset delta {header.last_offset_delta}"
        )
    return header


def read_base_offset(buffer: Buffer, pos: int = 0) -> int:
    """Return the base offset of the batch at `pos`, which may have nothing else right."""
    return int(_BASE.unpack_from(buffer, pos)[0])


def iter_batches(buffer: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of every whole batch in `buffer` from `pos` on.

    A partial batch at the end (fetch responses are cut anywhere) ends the iteration.
    Raises CorruptRecordBatch where a header makes no sense.
    """
    end = len(buffer)
    while end - pos >= HEADER_SIZE:
        header = read_header(buffer, pos)
        after = pos + LOG_OVERHEAD + header.batch_length
        if after > end:
            return
        yield pos, header
        pos = after


def whole_batches_size(buffer: Buffer, pos: int = 0) -> int:
    """Return how many bytes from `pos` on are whole batches; a fetch response may end within a batch."""
    start, end = pos, len(buffer)
    while end - pos >= HEADER_SIZE:
        size = LOG_OVERHEAD + int(_SIZE.unpack_from(buffer, pos)[0])
        if size < HEADER_SIZE or pos + size > end:
            break
        pos += size
    return pos - start


def compute_crc(buffer: Buffer, pos: int, size: int) -> int:
    """Return the CRC-32C of the batch of `size` bytes at `pos`, from its attributes to its end."""
    return crc32c(memoryview(buffer)[pos + CRC_START : pos + size])


def check_crc(buffer: Buffer, pos: int, header: BatchHeader) -> None:
    """Raise CorruptRecordBatch unless the whole batch is there and its CRC is right."""
    size = LOG_OVERHEAD + header.batch_length
    if len(buffer) - pos < size:
        raise CorruptRecordBatch(f"batch of {size} bytes cut off after {len(buffer) - pos}")
    computed = crc32c(memoryview(buffer)[pos + CRC_START : pos + size])
    if computed != header.crc:
        raise CorruptRecordBatch(f"batch CRC is {computed:#010x}, its header says {header.crc:#010x}")


def assign_offset(batch: bytearray | memoryview, base_offset: int, leader_epoch: int, pos: int = 0) -> None:
    """Write base offset and leader epoch into the batch at `pos`, in place; the CRC does not cover them."""
    _BASE.pack_into(batch, pos, base_offset)
    _LEADER_EPOCH.pack_into(batch, pos + 12, leader_epoch)


def assign_append_time(batch: bytearray | memoryview, now_ms: int, pos: int = 0) -> None:
    """Give the whole batch at `pos` the log append time `now_ms`, in place, with a new CRC.

    Readers take `max_timestamp` for every record then, so compressed records stay as they are.
    """
    size = LOG_OVERHEAD + int(_SIZE.unpack_from(batch, pos)[0])
    batch[pos + 22] |= APPEND_TIME_BIT
    _TIMES.pack_into(batch, pos + 35, now_ms)
    _CRC.pack_into(batch, pos + CRC_POSITION, compute_crc(batch, pos, size))


def assign_max_timestamp(batch: bytearray | memoryview, newest_ms: int, pos: int = 0) -> None:
    """Write the time of the newest record into the header of the batch at `pos`, in place, with a new CRC."""
    size = LOG_OVERHEAD + int(_SIZE.unpack_from(batch, pos)[0])
    _TIMES.pack_into(batch, pos + 35, newest_ms)
    _CRC.pack_into(batch, pos + CRC_POSITION, compute_crc(batch, pos, size))
