"""Record batches read into tuples; `columns` reads them by column.

One pass over the bytes, no object per record but its tuple. The one-byte varint is inlined, longer
ones take a call. Every record has to end where its length says, and no length is believed before
it is compared with what is left: garbage raises CorruptRecordBatch. The CRC is the caller's to
check (`check_crc`), since a broker and its disk often have done so already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, cast

from logd.errors import CorruptRecordBatch
from logd.records.build import Headers, Record
from logd.records.compression import DECOMPRESSED_LIMIT, decompress
from logd.records.header import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, Buffer, read_header
from logd.records.varint import read_zigzag

_RECORD_SIZE_MIN = 7
"""Length, attributes, timestamp, offset, no key, no value, no headers: a byte each."""


@dataclass(slots=True)
class Columns:
    """A batch's records by column; all five lists are as long as the batch has records."""

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """The columns of decoded records."""
        columns: Any = map(list, zip(*records, strict=True))
        return cls(*columns)

    def records(self) -> Iterator[Record]:
        """Record by record again."""
        return zip(self.offsets, self.timestamps, self.keys, self.values, self.headers, strict=True)

    def from_offset(self, offset: int) -> Columns:
        """Those at an offset and behind it."""
        first = bisect_left(self.offsets, offset)
        return Columns(
            self.offsets[first:],
            self.timestamps[first:],
            self.keys[first:],
            self.values[first:],
            self.headers[first:],
        )


def decode_records(buffer: Buffer, pos: int = 0, *, limit: int = DECOMPRESSED_LIMIT) -> list[Record]:
    """The records of the batch at `pos`, decompressed (to at most `limit` bytes).

    With log append time every record carries the batch's. Raises CorruptRecordBatch.
    """
    header = read_header(buffer, pos)
    return decode_body(read_body(buffer, pos, header, limit), header)


def decode_body(body: bytes, header: BatchHeader) -> list[Record]:
    """The records of a batch whose decompressed body is there already (`read_body`); see `decode_records`."""
    records = _decoded(body, header.count, header)
    if header.timestamp_type:
        now = header.max_timestamp
        return [(offset, now, key, value, headers) for offset, _, key, value, headers in records]
    return records


def check_first_record(batch: memoryview, header: BatchHeader) -> None:
    """Refuse an uncompressed batch with a broken first record, in time that does not grow with the batch.

    The others' places are only known by walking over them all. Of a single record only the length is checked,
    against the batch's: more would slow down requests of one record. Raises CorruptRecordBatch.
    """
    end = len(batch)
    try:
        raw, pos = batch[HEADER_SIZE], HEADER_SIZE + 1
        if raw >= 0x80:
            raw, pos = read_zigzag(cast("bytes", batch), HEADER_SIZE)
    except IndexError:
        raise CorruptRecordBatch(f"{header.count} records in {end - HEADER_SIZE} bytes") from None
    stop = pos + (raw >> 1)
    alone = header.count == 1
    if raw & 1 or (stop != end if alone else stop + (header.count - 1) * _RECORD_SIZE_MIN > end):
        raise CorruptRecordBatch(f"the first of {header.count} records ends at byte {stop} of {end}")
    if alone:
        return
    # Read through a view: nothing is copied, and what is decoded is not kept.
    offset = _decoded(cast("bytes", batch[HEADER_SIZE:stop]), 1, header)[0][0]
    if offset != header.base_offset:
        raise CorruptRecordBatch(f"the first record has offset delta {offset - header.base_offset}")


def read_body(buffer: Buffer, pos: int, header: BatchHeader, limit: int = DECOMPRESSED_LIMIT) -> bytes:
    """What follows the header of the batch at `pos`, decompressed; CorruptRecordBatch if it is cut off."""
    end = pos + LOG_OVERHEAD + header.batch_length
    if end > len(buffer):
        raise CorruptRecordBatch(f"batch of {header.size} bytes cut off after {len(buffer) - pos}")
    body = bytes(memoryview(buffer)[pos + HEADER_SIZE : end])
    if not header.count and not body:
        return body
    body = decompress(header.codec, body, limit)
    if header.count * _RECORD_SIZE_MIN > len(body):
        raise CorruptRecordBatch(f"{header.count} records in {len(body)} bytes")
    return body


def _decoded(body: bytes, count: int, header: BatchHeader) -> list[Record]:
    """`count` records and nothing more; CorruptRecordBatch."""
    try:
        return _decode(body, count, header.base_offset, header.base_timestamp)
    except IndexError:
        raise CorruptRecordBatch("a record is cut off") from None
    except UnicodeDecodeError:
        raise CorruptRecordBatch("a header's name is not UTF-8") from None


def _decode(body: bytes, count: int, base_offset: int, base_timestamp: int) -> list[Record]:
    """Straight down the body. Numbers stay zigzag-encoded (odd is negative) until they are used.

    Lengths of fields are not compared with what is left: a slice cannot read outside, and a record
    that did not end at its `stop` is refused.
    """
    records: list[Record] = []
    append = records.append
    key: bytes | None
    value: bytes | None
    headers: Headers
    end = len(body)
    pos = 0
    for _ in range(count):
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        elif (high := body[pos + 1]) < 0x80:
            raw += (high << 7) - 0x80
            pos += 2
        else:
            raw, pos = read_zigzag(body, pos)
        stop = pos + (raw >> 1)
        if raw & 1 or stop > end:
            raise CorruptRecordBatch(f"a record ends at byte {stop} of {end}")
        # The byte at `pos` holds the record's attributes; none are defined.
        time = body[pos + 1]
        if time < 0x80:
            pos += 2
        elif (high := body[pos + 2]) < 0x80:
            time += (high << 7) - 0x80
            pos += 3
        else:
            time, pos = read_zigzag(body, pos + 1)
        delta = body[pos]
        if delta < 0x80:
            pos += 1
        elif (high := body[pos + 1]) < 0x80:
            delta += (high << 7) - 0x80
            pos += 2
        else:
            delta, pos = read_zigzag(body, pos)
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        else:
            raw, pos = read_zigzag(body, pos)
        if raw & 1:
            check_null(raw, "key")
            key = None
        else:
            key = body[pos : (pos := pos + (raw >> 1))]
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        elif (high := body[pos + 1]) < 0x80:
            raw += (high << 7) - 0x80
            pos += 2
        else:
            raw, pos = read_zigzag(body, pos)
        if raw & 1:
            check_null(raw, "value")
            value = None
        else:
            value = body[pos : (pos := pos + (raw >> 1))]
        if body[pos]:
            headers, pos = decode_headers(body, pos, stop)
        else:
            headers = ()
            pos += 1
        if pos != stop:
            raise CorruptRecordBatch(f"a record ends at byte {pos}, its length says {stop}")
        if (time | delta) & 1:
            time, delta = time ^ -(time & 1), delta ^ -(delta & 1)
        append((base_offset + (delta >> 1), base_timestamp + (time >> 1), key, value, headers))
    if pos != end:
        raise CorruptRecordBatch(f"{end - pos} bytes after the last of {count} records")
    return records


def check_null(raw: int, what: str) -> None:
    """Of the negative lengths only -1 (zigzag 1) means something: null."""
    if raw != 1:
        raise CorruptRecordBatch(f"a {what} of negative length")


def decode_headers(body: bytes, pos: int, stop: int) -> tuple[Headers, int]:
    """A record's headers at `pos`, and where they end, at most at `stop` unless they are broken."""
    count, pos = read_zigzag(body, pos)
    # A header is two bytes at least: empty name, empty or null value.
    if count & 1 or count > stop - pos:
        raise CorruptRecordBatch(f"{count >> 1} headers in {stop - pos} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count >> 1):
        raw, pos = read_zigzag(body, pos)
        if raw & 1:
            raise CorruptRecordBatch("a header without a name")
        name = str(body[pos : pos + (raw >> 1)], "utf-8")
        pos += raw >> 1
        raw, pos = read_zigzag(body, pos)
        if raw & 1:
            check_null(raw, "header's value")
            headers.append((name, None))
        else:
            headers.append((name, body[pos : pos + (raw >> 1)]))
            pos += raw >> 1
    return tuple(headers), pos
