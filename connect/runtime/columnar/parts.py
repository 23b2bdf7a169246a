"""The records of what was fetched as Arrow arrays, in parts of bounded size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, overload

import pyarrow as pa

from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.fetcher.parts import Batches, OnUnreadable, open_reader, unreadable_batch
from kafka_client.records import ArrowColumns, BinaryColumn, Headers, Record

_MILLISECONDS = pa.timestamp("ms", tz="UTC")


class ColumnarPart:
    """The next records of one partition as arrays; `next_offset` is where the next part starts."""

    def __init__(self, pieces: Sequence[ArrowColumns], next_offset: int, timestamp_type: int) -> None:
        self.next_offset = next_offset
        self.timestamp_type = timestamp_type
        self.offsets = _joined([_int64(p.offsets, p.count, pa.int64()) for p in pieces], pa.int64())
        self.timestamps = _joined(
            [_int64(p.timestamps, p.count, _MILLISECONDS) for p in pieces], _MILLISECONDS
        )
        self.keys = _joined([_binary(p.keys, p.count) for p in pieces], pa.binary())
        self.values = _joined([_binary(p.values, p.count) for p in pieces], pa.binary())
        self.headers: list[Headers] | None = None
        if any(p.headers is not None for p in pieces):
            self.headers = [each for p in pieces for each in p.headers or [()] * p.count]
        self.records: Sequence[Record] = _Records(self)

    def raw_record(self, offset: int) -> Record | None:
        """Return the record at an offset, None if the part has none there."""
        index = bisect_left(self.offsets.to_numpy(), offset)
        return self.records[index] if index < len(self.records) and self.records[index][0] == offset else None

    def slice(self, start: int, stop: int, next_offset: int) -> ColumnarPart:
        """Return the records from index `start` up to, but not including, `stop`, without a copy."""
        part = ColumnarPart((), next_offset, self.timestamp_type)
        part.offsets, part.timestamps = self.offsets[start:stop], self.timestamps[start:stop]
        part.keys, part.values = self.keys[start:stop], self.values[start:stop]
        part.headers = None if self.headers is None else self.headers[start:stop]
        return part


class _Records(Sequence[Record]):
    """A part's records as tuples, made when one is read: rows are looked at only after a failure."""

    def __init__(self, part: ColumnarPart) -> None:
        self._part = part
        self._made: list[Record] | None = None

    def __len__(self) -> int:
        return len(self._part.offsets)

    def __iter__(self) -> Iterator[Record]:
        return iter(self[:])

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if self._made is None:
            part = self._part
            columns = (part.offsets, part.timestamps.cast(pa.int64()), part.keys, part.values)
            headers = part.headers or [()] * len(self)
            self._made = list(zip(*(c.to_pylist() for c in columns), headers, strict=True))
        return self._made[index]


def columnar_parts(
    fetched: Batches, max_records: int, max_bytes: int, on_unreadable: OnUnreadable | None = None
) -> Iterator[ColumnarPart]:
    """Yield what was fetched in parts of at most `max_records` and about `max_bytes` of keys and values.

    A single record may have more. Batches that cannot be read are handled as `read_parts` does.
    """
    gathered: list[ArrowColumns] = []
    count = size = timestamp_type = 0
    try:
        for header, batch in fetched.batches(on_unreadable=on_unreadable):
            try:
                reader = open_reader(fetched, header, batch)
                while (columns := reader.arrow(max_records - count)).count:
                    bytes_more = columns.keys.ends[-1] + columns.values.ends[-1]
                    if gathered and (
                        size + bytes_more > max_bytes or timestamp_type != header.timestamp_type
                    ):
                        yield _part(gathered, timestamp_type)
                        gathered, count, size = [], 0, 0
                    timestamp_type = header.timestamp_type
                    gathered.append(columns)
                    count, size = count + columns.count, size + bytes_more
                    if count >= max_records or size >= max_bytes:
                        yield from _bounded(_part(gathered, timestamp_type), max_bytes)
                        gathered, count, size = [], 0, 0
            except CorruptRecordBatch as error:
                unreadable = unreadable_batch(fetched.tp, header, error)
                if on_unreadable is None:
                    raise unreadable from error
                on_unreadable(unreadable)
    except UnreadableBatch:
        if gathered:
            yield _part(gathered, timestamp_type)
        raise
    yield ColumnarPart(gathered, fetched.next_offset, timestamp_type)


def _part(gathered: Sequence[ArrowColumns], timestamp_type: int) -> ColumnarPart:
    return ColumnarPart(gathered, gathered[-1].offsets[-1] + 1, timestamp_type)


def _bounded(part: ColumnarPart, max_bytes: int) -> Iterator[ColumnarPart]:
    """Yield the part in pieces of at most `max_bytes` of keys and values, and at least one record."""
    keys, values = _ends(part.keys), _ends(part.values)
    ends = [key + value for key, value in zip(keys, values, strict=True)]
    if ends[-1] - ends[0] <= max_bytes:
        yield part
        return
    start = 0
    while start < len(part.records):
        stop = max(bisect_right(ends, ends[start] + max_bytes) - 1, start + 1)
        yield part.slice(start, stop, part.offsets[stop - 1].as_py() + 1)
        start = stop


def _ends(column: pa.Array) -> memoryview:
    return memoryview(column.buffers()[1]).cast("i")[column.offset : column.offset + len(column) + 1]


def _joined(arrays: list[pa.Array], type: pa.DataType) -> pa.Array:
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays(arrays) if arrays else pa.array([], type)


def _int64(numbers: Any, count: int, type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(type, count, [None, pa.py_buffer(numbers)])


def _binary(column: BinaryColumn, count: int) -> pa.Array:
    valid = None if column.valid is None else pa.py_buffer(column.valid)
    buffers = [valid, pa.py_buffer(column.ends), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, column.nulls)
