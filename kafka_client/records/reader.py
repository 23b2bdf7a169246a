"""The one decoder of record batches: it checks each record and gives records in the form the caller needs.

A record inside a batch (every length and delta is a zigzag varint, a length of -1 is null):

    length │ attributes │ timestamp delta │ offset delta │ key length, key │ value length, value
           │ header count │ (name length, name │ value length, value)*

`RecordReader._next` walks one record and notes where its fields lie. Everything else is built on that:
a verdict, records, columns, Arrow buffers, spans for the cleaner, each key's last value. A reader holds the
bytes of a batch and a place in them, so a batch can be read in parts of any size. A compressed body is
decompressed in pieces (`compression.pieces`), so memory follows the piece, not the batch.

No length is used before it is compared with the bytes that are there. Every record has to end where its
length says, and the last one where the batch ends. The CRC is the caller's to check (`header.check_crc`).

This module is compiled by Cython. It also runs as plain Python, only slower; then `_data` is a bytes object.
Numbers that a C type cannot hold are refused in both forms, so that both read the same.

Source: Kafka's DefaultRecord and ByteUtils (KIP-98).
"""

from __future__ import annotations

import struct
from array import array
from typing import Any, NamedTuple, TypeAlias

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.columns import ArrowColumns, BinaryColumn, Columns
from kafka_client.records.compression import DECOMPRESSED_LIMIT, pieces
from kafka_client.records.header import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    read_header,
)
from kafka_client.records.record import Record

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

if cython.compiled:
    from cython.cimports.libc.string import memcpy

RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 65_536)
"""Bytes from which on a check lets other threads run meanwhile."""

INT32_BYTES = cython.declare(cython.int, 5)
INT64_BYTES = cython.declare(cython.int, 10)
INT64_MAX = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)

# Results of `_varint` in place of a position.
CUT_OFF = cython.declare(cython.Py_ssize_t, -1)
TOO_LONG = cython.declare(cython.Py_ssize_t, -2)

# Results of `_next`.
OK = cython.declare(cython.int, 0)
INCOMPLETE = cython.declare(cython.int, 1)
BAD_LENGTH = cython.declare(cython.int, 2)
TOO_LARGE = cython.declare(cython.int, 3)
BAD_TIMESTAMP = cython.declare(cython.int, 4)
BAD_OFFSET = cython.declare(cython.int, 5)
BAD_KEY = cython.declare(cython.int, 6)
BAD_VALUE = cython.declare(cython.int, 7)
BAD_HEADERS = cython.declare(cython.int, 8)
BAD_END = cython.declare(cython.int, 9)
NOT_CONSECUTIVE = cython.declare(cython.int, 10)

_pack_timestamp = struct.Struct(">q").pack
_PROBLEMS = (
    "",
    "is cut off",
    "has a length no record can have",
    "is longer than a record may be",
    "has a timestamp that is no number of 64 bits",
    "has an offset that is no number of 64 bits",
    "has a key whose length does not fit the record",
    "has a value whose length does not fit the record",
    "has headers that do not fit the record",
    "does not end where its length says",
    "does not have the offset after the one before",
)
"""By result of `_next`."""


class Checked(NamedTuple):
    """The result of a check of all records.

    `max_timestamp`: the largest timestamp, ms, and `max_timestamp_offset` the first record that has it.
    `min_timestamp`: the smallest timestamp but -1 (no timestamp); INT64_MAX if no record has one.
    `keyless`: how many records have no key.
    """

    max_timestamp: int
    max_timestamp_offset: int
    min_timestamp: int
    keyless: int


Span: TypeAlias = tuple[int, int, int, int, bytes | None, bool]
"""Start and stop in `RecordReader.piece`, offset, timestamp ms, key, True if the record has a value."""


def decode_records(buffer: Buffer, pos: int = 0, *, limit: int = DECOMPRESSED_LIMIT) -> list[Record]:
    """Return all records of the batch at `pos`, decompressed to at most `limit` bytes.

    With log append time every record has the batch's. Raises CorruptRecordBatch.
    """
    return RecordReader(buffer, pos, limit=limit).records()


def decode_columns(buffer: Buffer, pos: int = 0, *, limit: int = DECOMPRESSED_LIMIT) -> Columns:
    """Return all records of the batch at `pos` by column; see `decode_records`."""
    return RecordReader(buffer, pos, limit=limit).columns()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    data: cython.p_const_uchar, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, bytes_max: cython.int
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    """Return the varint at `pos`, still zigzag-encoded, and the position after it.

    The position is CUT_OFF if the bytes end before the number, and TOO_LONG if the number is more than
    32 bits (5 bytes) or 64 bits (10 bytes) can hold.
    """
    if end - pos >= 2:
        if data[pos] < 0x80:
            return data[pos], pos + 1
        if data[pos + 1] < 0x80:
            return data[pos] & 0x7F | data[pos + 1] << 7, pos + 2
    return _long_varint(data, pos, end, bytes_max)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(
    data: cython.p_const_uchar, pos: cython.Py_ssize_t, end: cython.Py_ssize_t, bytes_max: cython.int
) -> tuple[cython.ulonglong, cython.Py_ssize_t]:
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        if byte < 0x80:
            if shift == 7 * (bytes_max - 1) and byte > (0x0F if bytes_max == INT32_BYTES else 1):
                return 0, TOO_LONG
            return value | byte << shift, pos
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift == 7 * bytes_max:
            return 0, TOO_LONG
    return 0, CUT_OFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(zigzag: cython.ulonglong) -> cython.longlong:
    half: cython.longlong = zigzag >> 1
    return -half - 1 if zigzag & 1 else half


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_sum(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    """Return True if the sum of both fits 64 bits."""
    if delta >= 0:
        return base <= INT64_MAX - delta
    return base >= -INT64_MAX - 1 - delta


@cython.cfunc
@cython.inline
def _copy(
    to: cython.p_uchar,
    at: cython.Py_ssize_t,
    data: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> None:
    if cython.compiled:
        memcpy(to + at, data + start, size)
    else:
        to[at : at + size] = data[start : start + size]


@cython.cfunc
def _longlongs(values: Any) -> cython.p_longlong:
    """Return where the numbers of an array lie."""
    if cython.compiled:
        place: cython.size_t = values.buffer_info()[0]
        return cython.cast(cython.p_longlong, place)
    return values


@cython.cfunc
def _ints(values: Any) -> cython.p_int:
    """Return where the numbers of an array lie."""
    if cython.compiled:
        place: cython.size_t = values.buffer_info()[0]
        return cython.cast(cython.p_int, place)
    return values


@cython.final
@cython.cclass
class RecordReader:
    """A place in the records of one batch.

    `batch` holds the batch at `pos`, whose header the caller may have read already. `limit`: bytes that the
    records may decompress to. `record_limit`: bytes that one record may have. A reader belongs to one thread
    at a time, and `batch` must not change meanwhile.

    Raises CorruptRecordBatch, here if the batch is cut off, and in every method if a record is broken; then
    the reader is of no further use.
    """

    _pieces: Any
    _piece: Any
    _view: cython.const[cython.uchar][::1]  # type: ignore[valid-type]
    _data: cython.p_const_uchar
    _pos: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _first: cython.Py_ssize_t
    _bytes_before: cython.longlong
    _count: cython.longlong
    _left: cython.longlong
    _base_offset: cython.longlong
    _base_timestamp: cython.longlong
    _append_time: cython.bint
    _append_timestamp: cython.longlong
    _record_limit: cython.ulonglong
    # The record that `_next` walked last.
    _start: cython.Py_ssize_t
    _timestamp: cython.longlong
    _delta: cython.longlong
    _key: cython.Py_ssize_t
    _key_size: cython.Py_ssize_t
    _value: cython.Py_ssize_t
    _value_size: cython.Py_ssize_t
    _headers: cython.Py_ssize_t
    _header_count: cython.Py_ssize_t
    _missing: cython.Py_ssize_t
    # What `_check_piece` has found.
    _max_timestamp: cython.longlong
    _max_timestamp_delta: cython.longlong
    _min_timestamp: cython.longlong
    _keyless: cython.longlong

    def __init__(
        self,
        batch: Buffer,
        pos: int = 0,
        header: BatchHeader | None = None,
        *,
        limit: int = DECOMPRESSED_LIMIT,
        record_limit: int = DECOMPRESSED_LIMIT,
    ) -> None:
        head: Any = read_header(batch, pos) if header is None else header
        size: cython.Py_ssize_t = LOG_OVERHEAD + head.batch_length
        if size > len(batch) - pos:
            raise CorruptRecordBatch(f"batch of {size} bytes cut off after {len(batch) - pos}")
        self._count = self._left = head.count
        self._start = 0
        self._bytes_before = 0
        self._base_offset = head.base_offset
        self._base_timestamp = head.base_timestamp
        self._append_time = head.timestamp_type
        self._append_timestamp = head.max_timestamp
        self._record_limit = record_limit
        self._pieces = None
        if head.attributes & CODEC_MASK and (head.count or size > HEADER_SIZE):
            self._pieces = pieces(head.codec, memoryview(batch)[pos + HEADER_SIZE : pos + size], limit)
            self._take(next(self._pieces, b""))
        else:
            self._take(batch)
            self._first = self._pos = pos + HEADER_SIZE
            self._end = pos + size
        if self._left == 0:
            self._check_end()

    @property
    def remaining(self) -> int:
        """Records that were not read yet."""
        return self._left

    @property
    def bytes_read(self) -> int:
        """Bytes of the records that were read, uncompressed."""
        return self._bytes_before + self._pos - self._first

    @property
    def piece(self) -> Buffer:
        """The bytes in which the last `spans` lie."""
        return self._piece  # type: ignore[no-any-return]

    # One record

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _next(self) -> cython.int:
        """Walk one record. Return OK, or what is wrong; INCOMPLETE if the piece does not hold all of it."""
        data = self._data
        pos: cython.Py_ssize_t = self._pos
        end: cython.Py_ssize_t = self._end
        number: cython.ulonglong
        self._start = pos
        number, pos = _varint(data, pos, end, INT32_BYTES)
        if pos < 0:
            self._missing = 1
            return INCOMPLETE if pos == CUT_OFF else BAD_LENGTH
        if number & 1:
            return BAD_LENGTH
        number >>= 1
        if number > self._record_limit:
            return TOO_LARGE
        if number > cython.cast(cython.ulonglong, end - pos):
            self._missing = cython.cast(cython.Py_ssize_t, number) - (end - pos)
            return INCOMPLETE
        end = pos + cython.cast(cython.Py_ssize_t, number)
        if pos == end:
            return BAD_LENGTH
        number, pos = _varint(data, pos + 1, end, INT64_BYTES)  # no record attributes are defined
        if pos < 0:
            return BAD_TIMESTAMP
        self._timestamp = self._append_timestamp
        if not self._append_time:
            if not _is_sum(self._base_timestamp, _signed(number)):
                return BAD_TIMESTAMP
            self._timestamp = self._base_timestamp + _signed(number)
        number, pos = _varint(data, pos, end, INT32_BYTES)
        self._delta = _signed(number)
        if pos < 0 or not _is_sum(self._base_offset, self._delta):
            return BAD_OFFSET
        number, pos = _varint(data, pos, end, INT32_BYTES)
        if pos < 0 or (number & 1 and number != 1):
            return BAD_KEY
        self._key, self._key_size = pos, -1
        if number != 1:
            number >>= 1
            if number > cython.cast(cython.ulonglong, end - pos):
                return BAD_KEY
            self._key_size = number
            pos += self._key_size
        number, pos = _varint(data, pos, end, INT32_BYTES)
        if pos < 0 or (number & 1 and number != 1):
            return BAD_VALUE
        self._value, self._value_size = pos, -1
        if number != 1:
            number >>= 1
            if number > cython.cast(cython.ulonglong, end - pos):
                return BAD_VALUE
            self._value_size = number
            pos += self._value_size
        number, pos = _varint(data, pos, end, INT32_BYTES)
        if pos < 0 or number & 1:
            return BAD_HEADERS
        number >>= 1
        self._headers, self._header_count = pos, number
        if number and (pos := self._after_headers(data, pos, end, number)) < 0:
            return BAD_HEADERS
        if pos != end:
            return BAD_END
        self._pos = end
        self._left -= 1
        return OK

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _after_headers(
        self,
        data: cython.p_const_uchar,
        pos: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """Return the position after `count` headers, or a negative one if they do not fit."""
        number: cython.ulonglong
        while count:
            number, pos = _varint(data, pos, end, INT32_BYTES)
            if pos < 0 or number & 1 or number >> 1 > cython.cast(cython.ulonglong, end - pos):
                return CUT_OFF
            pos += cython.cast(cython.Py_ssize_t, number >> 1)
            number, pos = _varint(data, pos, end, INT32_BYTES)
            if pos < 0 or (number & 1 and number != 1):
                return CUT_OFF
            if number != 1:
                if number >> 1 > cython.cast(cython.ulonglong, end - pos):
                    return CUT_OFF
                pos += cython.cast(cython.Py_ssize_t, number >> 1)
            count -= 1
        return pos

    @cython.cfunc
    def _advance(self) -> cython.bint:
        """Walk the next record, into the next piece if need be. Return False after the last one."""
        if self._left == 0:
            return False
        status: cython.int = self._next()
        while status == INCOMPLETE and self._read_on():
            status = self._next()
        if status != OK:
            self._fail(status)
        if self._left == 0:
            self._check_end()
        return True

    @cython.cfunc
    def _take(self, piece: Any) -> None:
        if not cython.compiled:
            piece = bytes(piece)
        self._piece = piece
        self._first = self._pos = 0
        self._end = len(piece)
        if cython.compiled:
            self._view = piece
            self._data = cython.address(self._view[0]) if self._end else cython.NULL
        else:
            self._data = piece

    @cython.cfunc
    def _read_on(self) -> cython.bint:
        """Decompress until the record at hand is whole. Return False if nothing is left to decompress."""
        if self._pieces is None:
            return False
        self._bytes_before += self._start - self._first
        parts: list[Any] = [memoryview(self._piece)[self._start :]]
        missing: cython.Py_ssize_t = self._missing
        while missing > 0:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            parts.append(piece)
            missing -= len(piece)
        self._take(b"".join(parts))
        return True

    @cython.cfunc
    def _check_end(self) -> None:
        """Raise CorruptRecordBatch if anything follows the last record."""
        more: cython.Py_ssize_t = self._end - self._pos
        while more == 0 and self._pieces is not None:
            piece = next(self._pieces, None)
            if piece is None:
                self._pieces = None
            else:
                more = len(piece)
        if more:
            raise CorruptRecordBatch(f"{more} bytes or more after the last of {self._count} records")

    @cython.cfunc
    def _fail(self, status: cython.int) -> None:
        raise CorruptRecordBatch(
            f"record {self._count - self._left + 1} of {self._count} {_PROBLEMS[status]}"
        )

    # A verdict

    def check(self) -> Checked:
        """Walk all records from the first one on, as a broker does with what a producer sent.

        Raises CorruptRecordBatch also if offsets are not consecutive from the base offset on.
        """
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_delta = 0
        self._min_timestamp = INT64_MAX
        self._keyless = 0
        status: cython.int = INCOMPLETE
        while status == INCOMPLETE:
            if self._end - self._pos < RELEASE_BYTES:
                status = self._check_piece()
            else:
                with cython.nogil:
                    status = self._check_piece()
            if status == INCOMPLETE and not self._read_on():
                break
        if status != OK:
            self._fail(status)
        self._check_end()
        return Checked(
            self._max_timestamp,
            self._base_offset + self._max_timestamp_delta,
            self._min_timestamp,
            self._keyless,
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _check_piece(self) -> cython.int:
        status: cython.int
        while self._left:
            status = self._next()
            if status != OK:
                return status
            if self._delta != self._count - self._left - 1:
                self._left += 1
                return NOT_CONSECUTIVE
            if self._key_size < 0:
                self._keyless += 1
            if self._timestamp > self._max_timestamp:
                self._max_timestamp = self._timestamp
                self._max_timestamp_delta = self._delta
            if self._timestamp < self._min_timestamp and self._timestamp != -1:
                self._min_timestamp = self._timestamp
        return OK

    # Records

    def skip_to(self, offset: cython.longlong) -> None:
        """Pass over the records before `offset`."""
        while self._advance():
            if self._base_offset + self._delta >= offset:
                self._step_back()
                return

    @cython.cfunc
    def _step_back(self) -> None:
        """Have the record that was walked last be the next one again."""
        self._pos = self._start
        self._left += 1

    def find(self, timestamp: cython.longlong, offset: cython.longlong) -> tuple[int, int] | None:
        """Return (timestamp, offset) of the first record at or after both, None if there is none."""
        while self._advance():
            if self._timestamp >= timestamp and self._base_offset + self._delta >= offset:
                return self._timestamp, self._base_offset + self._delta
        return None

    def records(self, max_records: cython.longlong = INT64_MAX) -> list[Record]:
        """Return the next records, at most `max_records`; none are left if the list is empty."""
        records: list[Any] = []
        last: cython.longlong = 0
        timestamp: Any = None
        while max_records > 0 and self._advance():
            max_records -= 1
            if timestamp is None or self._timestamp != last:
                last = self._timestamp
                timestamp = last
            records.append(
                (
                    self._base_offset + self._delta,
                    timestamp,
                    self._key_bytes(),
                    self._value_bytes(),
                    self._header_tuples() if self._header_count else (),
                )
            )
        return records

    def columns(self, max_records: cython.longlong = INT64_MAX) -> Columns:
        """Return the next records, at most `max_records`, by column."""
        offsets: list[Any] = []
        timestamps: list[Any] = []
        keys: list[Any] = []
        values: list[Any] = []
        headers: list[Any] = []
        last: cython.longlong = 0
        timestamp: Any = None
        while max_records > 0 and self._advance():
            max_records -= 1
            if timestamp is None or self._timestamp != last:
                last = self._timestamp
                timestamp = last
            offsets.append(self._base_offset + self._delta)
            timestamps.append(timestamp)
            keys.append(self._key_bytes())
            values.append(self._value_bytes())
            headers.append(self._header_tuples() if self._header_count else ())
        return Columns(offsets, timestamps, keys, values, headers)

    @cython.cfunc
    @cython.inline
    def _key_bytes(self) -> Any:
        if self._key_size < 0:
            return None
        return self._data[self._key : self._key + self._key_size]

    @cython.cfunc
    @cython.inline
    def _value_bytes(self) -> Any:
        if self._value_size < 0:
            return None
        return self._data[self._value : self._value + self._value_size]

    @cython.cfunc
    def _header_tuples(self) -> Any:
        """Return the headers of the record that was walked last.

        Names that are no UTF-8 are read with replacement characters, as Java's clients read them.
        """
        headers: list[Any] = []
        pos: cython.Py_ssize_t = self._headers
        size: cython.Py_ssize_t
        number: cython.ulonglong
        count: cython.Py_ssize_t = self._header_count
        while count:
            count -= 1
            number, pos = _varint(self._data, pos, self._end, INT32_BYTES)
            size = number >> 1
            name = self._data[pos : pos + size].decode("utf-8", "replace")
            pos += size
            number, pos = _varint(self._data, pos, self._end, INT32_BYTES)
            if number == 1:
                headers.append((name, None))
                continue
            size = number >> 1
            headers.append((name, self._data[pos : pos + size]))
            pos += size
        return tuple(headers)

    # Other forms

    def latest(self, latest: dict[bytes, bytes | None]) -> int:
        """Put each key's last value into `latest`, None for a tombstone, over what it has already.

        A value has its record's timestamp before it, as Kafka Streams' timestamped stores keep it:
        int64 ms, big-endian. Records without a key are left out. Returns how many records have one.
        If CorruptRecordBatch is raised, `latest` may have some of the records already.
        """
        keyed: cython.longlong = 0
        last: cython.longlong = 0
        stamp: Any = None
        while self._advance():
            if self._key_size < 0:
                continue
            keyed += 1
            if stamp is None or self._timestamp != last:
                last = self._timestamp
                stamp = _pack_timestamp(last)
            latest[self._key_bytes()] = None if self._value_size < 0 else stamp + self._value_bytes()
        return keyed

    def spans(self) -> list[Span]:
        """Return where the next records lie in `piece`: all that lie in one, none if none are left."""
        spans: list[Any] = []
        if not self._advance():
            return spans
        spans.append(self._span())
        piece = self._piece
        while self._left and self._next() == OK:
            spans.append(self._span())
        if self._left == 0:
            self._check_end()
        assert piece is self._piece
        return spans

    @cython.cfunc
    def _span(self) -> Any:
        return (
            self._start,
            self._pos,
            self._base_offset + self._delta,
            self._timestamp,
            self._key_bytes(),
            self._value_size >= 0,
        )

    def arrow(self, max_records: cython.longlong = INT64_MAX) -> ArrowColumns:
        """Return the next records as Arrow buffers: at most `max_records`, and only those of one piece.

        No records are left if `count` is 0. A batch is less than 2 GiB, so int32 is enough for `ends`.
        """
        count: cython.Py_ssize_t = 0
        key_bytes: cython.longlong = 0
        value_bytes: cython.longlong = 0
        headers: cython.longlong = 0
        more: cython.bint = max_records > 0 and self._advance()
        start: cython.Py_ssize_t = self._start
        left: cython.longlong = self._left + 1
        while more:
            count += 1
            key_bytes += self._key_size if self._key_size > 0 else 0
            value_bytes += self._value_size if self._value_size > 0 else 0
            headers += self._header_count
            more = count < max_records and self._left > 0 and self._next() == OK
        if count == 0:
            empty = BinaryColumn(array("i", (0,)), bytearray(), None, 0)
            return ArrowColumns(0, array("q"), array("q"), empty, empty, None)
        self._pos, self._left = start, left
        filled = self._fill(count, key_bytes, value_bytes, headers > 0)
        if self._left == 0:
            self._check_end()
        return filled

    @cython.cfunc
    def _fill(
        self,
        count: cython.Py_ssize_t,
        key_bytes: cython.Py_ssize_t,
        value_bytes: cython.Py_ssize_t,
        has_headers: cython.bint,
    ) -> ArrowColumns:
        """Walk `count` records of this piece, which were walked before, into buffers of the right sizes."""
        offset_array = array("q", bytes(8 * count))
        timestamp_array = array("q", bytes(8 * count))
        key_end_array = array("i", bytes(4 * count + 4))
        value_end_array = array("i", bytes(4 * count + 4))
        key_data, value_data = bytearray(key_bytes), bytearray(value_bytes)
        key_valid = bytearray(b"\xff" * ((count + 7) >> 3))
        value_valid = bytearray(key_valid)
        offsets: cython.p_longlong = _longlongs(offset_array)
        timestamps: cython.p_longlong = _longlongs(timestamp_array)
        key_ends: cython.p_int = _ints(key_end_array)
        value_ends: cython.p_int = _ints(value_end_array)
        keys: cython.p_uchar = key_data
        values: cython.p_uchar = value_data
        keys_valid: cython.p_uchar = key_valid
        values_valid: cython.p_uchar = value_valid
        headers: Any = [] if has_headers else None
        key_at: cython.int = 0
        value_at: cython.int = 0
        key_nulls: cython.Py_ssize_t = 0
        value_nulls: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = 0
        while n < count:
            if (
                self._next() != OK
                or self._key_size > key_bytes - key_at
                or self._value_size > value_bytes - value_at
            ):
                raise BufferError("a batch changed while it was read")  # C would write past the buffers
            offsets[n] = self._base_offset + self._delta
            timestamps[n] = self._timestamp
            if self._key_size < 0:
                key_nulls += 1
                keys_valid[n >> 3] &= ~(1 << (n & 7)) & 0xFF
            else:
                _copy(keys, key_at, self._data, self._key, self._key_size)
                key_at += self._key_size
            if self._value_size < 0:
                value_nulls += 1
                values_valid[n >> 3] &= ~(1 << (n & 7)) & 0xFF
            else:
                _copy(values, value_at, self._data, self._value, self._value_size)
                value_at += self._value_size
            n += 1
            key_ends[n] = key_at
            value_ends[n] = value_at
            if has_headers:
                headers.append(self._header_tuples() if self._header_count else ())
        return ArrowColumns(
            count,
            offset_array,
            timestamp_array,
            BinaryColumn(key_end_array, key_data, key_valid if key_nulls else None, key_nulls),
            BinaryColumn(value_end_array, value_data, value_valid if value_nulls else None, value_nulls),
            headers,
        )
