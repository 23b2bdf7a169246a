"""Where the records of a batch stand, and their keys: values and headers are passed over.

A record is drawn in `records.build`.
"""

from __future__ import annotations

from typing import TypeAlias

from logd.errors import CorruptRecordBatch
from logd.records.varint import read_zigzag, varint

Span: TypeAlias = tuple[int, int, int, int, bytes | None, bool]
"""Where a record begins and ends in the body, timestamp delta (ms), offset delta, key, whether a value."""


def record_spans(body: bytes, count: int) -> list[Span]:
    """The `count` records of a decompressed body. Raises CorruptRecordBatch."""
    try:
        return _spans(body, count)
    except IndexError:
        raise CorruptRecordBatch("a record is cut off") from None


def _spans(body: bytes, count: int) -> list[Span]:
    """Straight down the body, the short varints inlined; numbers stay zigzag-encoded until they are used."""
    spans: list[Span] = []
    append = spans.append
    end = len(body)
    pos = 0
    key: bytes | None
    for _ in range(count):
        start = pos
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
            key = None
        else:
            key = body[pos : (pos := pos + (raw >> 1))]
        # The first byte of the value's length tells: -1 is null, and zigzag 1.
        if pos >= stop:
            raise CorruptRecordBatch(f"a key ends at byte {pos}, its record at {stop}")
        append((start, stop, (time >> 1) ^ -(time & 1), (delta >> 1) ^ -(delta & 1), key, body[pos] != 1))
        pos = stop
    if pos != end:
        raise CorruptRecordBatch(f"{end - pos} bytes after the last of {count} records")
    return spans


def retimed(body: bytes, span: Span, shift: int) -> bytes:
    """The record with its timestamp delta changed by `shift` ms."""
    _, pos = read_zigzag(body, span[0])
    _, rest = read_zigzag(body, pos + 1)
    record = b"".join((body[pos : pos + 1], varint(span[2] + shift), body[rest : span[1]]))
    return varint(len(record)) + record
