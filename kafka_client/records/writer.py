"""The encoder of records: as many bytes as they may take, and the bytes.

A record is drawn in `reader`. This module is compiled by Cython. It also runs as plain Python, only slower.

Source: Kafka's DefaultRecord and ByteUtils (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

if TYPE_CHECKING:
    from kafka_client.records.record import NewRecord, Record

if cython.compiled:
    from cython.cimports.libc.string import memcpy

INT64_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 5 + 1 + 10 + 5 + 5 + 5 + 5)
"""Bytes that a record may take besides its key, value and headers."""
HEADER_OVERHEAD = cython.declare(cython.Py_ssize_t, 5 + 5)


def estimate_sizes(records: Iterable[NewRecord]) -> list[int]:
    """Return for each record how many bytes it takes at most in an uncompressed batch."""
    sizes: list[int] = []
    for _, key, value, headers in records:
        sizes.append(_size_max(key, value, headers))
    return sizes


def encode_records(records: Sequence[NewRecord], base_timestamp: int) -> bytearray:
    """Return the records of a new batch: offset deltas count from 0.

    Raises OverflowError if a timestamp, or its distance from `base_timestamp`, does not fit 64 bits.
    """
    room: cython.Py_ssize_t = 0
    for _, key, value, headers in records:
        room += _size_max(key, value, headers)
    out = bytearray(room)
    delta: cython.longlong
    base: cython.longlong = base_timestamp
    end: cython.Py_ssize_t = 0
    for delta, (timestamp, key, value, headers) in enumerate(records):
        end = _put_record(out, end, _difference(timestamp, base), delta, key, value, headers)
    del out[end:]
    return out


def encode_kept(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """Return the records of a batch that was compacted: each keeps its offset. Raises as `encode_records`."""
    room: cython.Py_ssize_t = 0
    for _, _, key, value, headers in records:
        room += _size_max(key, value, headers)
    out = bytearray(room)
    base: cython.longlong = base_timestamp
    end: cython.Py_ssize_t = 0
    for offset, timestamp, key, value, headers in records:
        end = _put_record(out, end, _difference(timestamp, base), offset - base_offset, key, value, headers)
    del out[end:]
    return out


@cython.cfunc
def _size_max(key: Any, value: Any, headers: Any) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = RECORD_OVERHEAD
    if key is not None:
        size += _byte_count(key)
    if value is not None:
        size += _byte_count(value)
    if headers:
        for name, data in headers:
            size += HEADER_OVERHEAD + 4 * len(name)  # a character takes at most four bytes of UTF-8
            if data is not None:
                size += _byte_count(data)
    return size


@cython.cfunc
@cython.inline
def _byte_count(data: Any) -> cython.Py_ssize_t:
    """Return how many bytes there are in `data`, whose elements may have several each."""
    if type(data) is bytes:
        return len(data)
    return memoryview(data).nbytes


@cython.cfunc
@cython.inline
def _as_bytes(data: Any) -> Any:
    """Return `data`, or a copy of it that nobody can change, as bytes; None stays None."""
    if data is None or type(data) is bytes:
        return data
    return bytes(memoryview(data))


@cython.cfunc
def _difference(timestamp: cython.longlong, base: cython.longlong) -> cython.longlong:
    if not -INT64_MAX - 1 <= timestamp <= INT64_MAX:  # never in C, whose numbers have 64 bits
        raise OverflowError(f"timestamp {timestamp} ms does not fit 64 bits")
    if (base < 0 and timestamp > INT64_MAX + base) or (base > 0 and timestamp < base - INT64_MAX - 1):
        raise OverflowError(f"timestamps {base} and {timestamp} ms are more than 64 bits apart")
    return timestamp - base


@cython.cfunc
def _put_record(
    out: bytearray,
    pos: cython.Py_ssize_t,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: Any,
    value: Any,
    headers: Any,
) -> cython.Py_ssize_t:
    """Write a record at `pos`. Return the position after it."""
    to: cython.p_uchar = out
    encoded: Any = _encode_headers(headers) if headers else b"\0"
    key, value = _as_bytes(key), _as_bytes(value)
    size: cython.Py_ssize_t = 1 + _varint_size(timestamp_delta) + _varint_size(offset_delta)
    size += _bytes_size(key) + _bytes_size(value) + len(encoded)
    # The caller made room for what the record was a moment ago; C would write past the end.
    if _varint_size(size) + size > len(out) - pos:
        raise BufferError("a record grew while its batch was written")
    pos = _put_varint(to, pos, size)
    to[pos] = 0  # no record attributes are defined
    pos = _put_varint(to, pos + 1, timestamp_delta)
    pos = _put_varint(to, pos, offset_delta)
    pos = _put_bytes(to, pos, key)
    pos = _put_bytes(to, pos, value)
    return _put(to, pos, encoded)


@cython.cfunc
def _encode_headers(headers: Any) -> Any:
    named: list[Any] = [(_as_bytes(name.encode()), _as_bytes(data)) for name, data in headers]
    size: cython.Py_ssize_t = _varint_size(len(named))
    for name, data in named:
        size += _bytes_size(name) + _bytes_size(data)
    out = bytearray(size)
    to: cython.p_uchar = out
    pos: cython.Py_ssize_t = _put_varint(to, 0, len(named))
    for name, data in named:
        pos = _put_bytes(to, pos, name)
        pos = _put_bytes(to, pos, data)
    return bytes(out)


@cython.cfunc
@cython.inline
def _bytes_size(data: Any) -> cython.Py_ssize_t:
    """Return how many bytes the length and `data` take."""
    if data is None:
        return 1
    size: cython.Py_ssize_t = len(data)
    return _varint_size(size) + size


@cython.cfunc
@cython.inline
def _put_bytes(to: cython.p_uchar, pos: cython.Py_ssize_t, data: Any) -> cython.Py_ssize_t:
    """Write the length and `data` at `pos`; None has the length -1."""
    if data is None:
        return _put_varint(to, pos, -1)
    return _put(to, _put_varint(to, pos, len(data)), data)


@cython.cfunc
@cython.inline
def _put(to: cython.p_uchar, pos: cython.Py_ssize_t, data: Any) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = len(data)
    if cython.compiled:
        source: cython.p_const_uchar = data
        memcpy(to + pos, source, size)
    else:
        to[pos : pos + size] = data
    return pos + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _zigzag(value: cython.longlong) -> cython.ulonglong:
    twice: cython.ulonglong
    if value < 0:
        twice = -(value + 1)
        return twice << 1 | 1
    twice = value
    return twice << 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.Py_ssize_t:
    rest: cython.ulonglong = _zigzag(value)
    size: cython.Py_ssize_t = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_varint(to: cython.p_uchar, pos: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    rest: cython.ulonglong = _zigzag(value)
    while rest > 0x7F:
        to[pos] = rest & 0x7F | 0x80
        rest >>= 7
        pos += 1
    to[pos] = rest
    return pos + 1
