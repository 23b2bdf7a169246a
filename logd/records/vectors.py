"""Large batches read a column at a time with numpy; `decode` reads them a record at a time without it.

Where a record begins only the one before says, by its length: so much is read record by record. Then each
field is taken of all records at once, and keys and values are cut out.

Nothing is refused here: what is broken, or of a kind too rare to be worth it, is left to `decode`, which says
what is wrong, if anything is. Importing this loads numpy: for those who read much, `columns` knows whether it
is there.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from logd.errors import CorruptRecordBatch
from logd.records.build import Headers
from logd.records.decode import Columns, decode_headers
from logd.records.header import BatchHeader

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"

_BASE_MAX = 1 << 61
_SHIFT_MAX = 49
"""Of the highest seven bits of a number that are read; a base and such a number are 64 bits together."""
_LAST = np.uint8(0x7F)
"""A larger byte of a number is not its last."""


class _NotForHere(Exception):
    """Broken, or too rare."""


def read_columns(body: bytes, header: BatchHeader) -> Columns | None:
    """All records of a batch, whose decompressed body this is; None leaves it to `decode`."""
    if not header.count or max(abs(header.base_offset), abs(header.base_timestamp)) > _BASE_MAX:
        return None
    try:
        return _read(body, header, _stops(body, header.count))
    except (_NotForHere, CorruptRecordBatch, IndexError, UnicodeDecodeError):
        return None


def _stops(body: bytes, count: int) -> list[int]:
    """Where each record ends, by its length."""
    stops: list[int] = []
    append = stops.append
    pos = 0
    for _ in range(count):
        raw = body[pos]
        if raw < 0x80:
            pos += (raw >> 1) + 1
        elif (high := body[pos + 1]) < 0x80:
            pos += ((raw + (high << 7) - 0x80) >> 1) + 2
        elif (higher := body[pos + 2]) < 0x80:
            pos += ((raw + (high << 7) + (higher << 14) - 0x4080) >> 1) + 3
        else:
            raise _NotForHere
        append(pos)
    if pos != len(body):
        raise _NotForHere
    return stops


def _read(body: bytes, header: BatchHeader, ends: list[int]) -> Columns:
    data: Bytes = np.frombuffer(body, np.uint8)
    stops: Numbers = np.array(ends, np.int64)
    starts = np.zeros_like(stops)
    starts[1:] = stops[:-1]
    lengths, pos = _numbers(data, starts)
    times, pos = _numbers(data, pos + 1)  # behind the attributes, of which there are none
    deltas, pos = _numbers(data, pos)
    keys, pos = _fields(body, data, pos)
    values, pos = _fields(body, data, pos)
    # A length is odd if it is negative; then `_stops` went another way than `decode` does.
    if np.count_nonzero(lengths & 1):
        raise _NotForHere
    return Columns(
        (_signed(deltas) + header.base_offset).tolist(),
        [header.max_timestamp] * header.count
        if header.timestamp_type
        else (_signed(times) + header.base_timestamp).tolist(),
        keys,
        values,
        _headers(body, data, pos, stops),
    )


def _numbers(data: Bytes, pos: Numbers) -> tuple[Numbers, Numbers]:
    """The varints at ``pos``, still zigzag-encoded, and the positions behind them."""
    byte = data.take(pos)
    numbers: Numbers = byte.astype(np.int64)
    pos = pos + 1
    more = byte > _LAST
    shift = 0
    while np.count_nonzero(more):
        shift += 7
        if shift > _SHIFT_MAX:
            raise _NotForHere
        # The byte before said with its highest bit that this one follows; the bit is no part of the number.
        byte = data.take(pos) * more
        numbers += (byte.astype(np.int64) - more) << shift
        pos += more
        more = byte > _LAST
    return numbers, pos


def _fields(body: bytes, data: Bytes, pos: Numbers) -> tuple[list[bytes | None], Numbers]:
    """The keys, or the values, whose lengths are at ``pos``, and the positions behind them."""
    sizes, begin = _numbers(data, pos)
    end = begin + (sizes >> 1)
    fields: list[bytes | None] = [body[b:e] for b, e in zip(begin.tolist(), end.tolist(), strict=True)]
    if np.count_nonzero(negative := sizes & 1):
        nulls = np.flatnonzero(negative)
        if np.count_nonzero(sizes[nulls] != 1):
            raise _NotForHere
        for n in nulls.tolist():
            fields[n] = None
    return fields, end


def _headers(body: bytes, data: Bytes, pos: Numbers, stops: Numbers) -> list[Headers]:
    """Each record's, which end where it ends."""
    headers: list[Headers] = [()] * len(stops)
    counts = data.take(pos)
    ends = pos + 1
    if np.count_nonzero(counts):
        for n in np.flatnonzero(counts).tolist():
            headers[n], ends[n] = decode_headers(body, int(pos[n]), int(stops[n]))
    if np.count_nonzero(ends != stops):
        raise _NotForHere
    return headers


def _signed(zigzag: Numbers) -> Numbers:
    return (zigzag >> 1) ^ -(zigzag & 1)
