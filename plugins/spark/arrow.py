"""Reads a range of the log as Arrow record batches, built from the buffers that the record reader fills."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import AsyncIterator, Generator, Iterator

import pyarrow as pa

from kafka_client import Fetched
from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.fetcher.parts import unreadable_batch
from kafka_client.records import ArrowColumns, BatchHeader, BinaryColumn, Headers, RecordReader, check_crc
from plugins.spark.log_range import LogRange
from plugins.spark.options import ReadOptions
from plugins.spark.range_reader import read_range
from plugins.spark.worker_connections import CONNECTIONS, WorkerConnections

_log = logging.getLogger(__name__)

ROWS = 10_000
"""Rows per Arrow batch. Below 1,000 the cost per batch is noticeable; above 10,000 there is no gain."""
GATHERED_BYTES_MAX = 64 << 20
"""Bytes of records per Arrow batch, unless a single part has more.

An Arrow column has less than 2 GiB; from more, `combine_chunks` would build several chunks.
"""

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_MILLISECONDS = pa.timestamp("ms", tz="UTC")
_TIMESTAMP = pa.timestamp("us", tz="UTC")
FIELDS = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", _TIMESTAMP),
    ("timestampType", pa.int32()),
]
HEADERS_FIELD = ("headers", pa.list_(_HEADER))


def record_schema(include_headers: bool) -> pa.Schema:
    """Return the schema of the batches."""
    return pa.schema([*FIELDS, HEADERS_FIELD] if include_headers else FIELDS)


def read_arrow(
    options: ReadOptions, log_range: LogRange, connections: WorkerConnections = CONNECTIONS
) -> Generator[pa.RecordBatch]:
    """Yield the records of one range, in order, about `ROWS` per batch.

    It runs an event loop, step by step. Raises DataLost by its kind (`data_loss`) if the log no longer has
    the range, or was truncated while it was read; without failOnDataLoss the remaining records are read.
    Raises UnreadableBatch for a batch that cannot be read; without failOnUnreadableBatch the batch's unread
    records are skipped. Raises RequestTimedOut if no broker answers in time, and KafkaError.
    """
    builder = _Builder(log_range, options.include_headers)
    on_unreadable = _fail if options.fail_on_unreadable_batch else _leave_out
    fetch = {"isolation_level": options.isolation_level, **options.fetch}
    with connections.borrow(options.bootstrap_servers, options.client, fetch) as connection:
        chunks = read_range(connection, options, log_range)
        try:
            while True:
                fetched = connection.run(_next(chunks))
                if fetched is None:
                    break
                for header, batch in fetched.batches(on_unreadable=on_unreadable):
                    try:
                        check_crc(batch, 0, header)
                        yield from builder.add(header, batch)
                    except CorruptRecordBatch as error:
                        on_unreadable(unreadable_batch(fetched.tp, header, error))
        finally:
            connection.run(chunks.aclose())
    if builder.rows:
        yield builder.take()


def _fail(unreadable: UnreadableBatch) -> None:
    raise unreadable


def _leave_out(unreadable: UnreadableBatch) -> None:
    _log.warning("skipped %d records: %s", unreadable.record_count, unreadable)


async def _next(chunks: AsyncIterator[Fetched]) -> Fetched | None:
    return await anext(chunks, None)


class _Builder:
    """A builder of Arrow batches from the rows of several record batches, cut to the range."""

    def __init__(self, log_range: LogRange, include_headers: bool) -> None:
        self._range = log_range
        self._schema = record_schema(include_headers)
        self._parts: list[pa.RecordBatch] = []
        self._bytes = 0
        self.rows = 0

    def add(self, header: BatchHeader, batch: memoryview) -> Iterator[pa.RecordBatch]:
        """Add the part of a record batch that lies in the range.

        Yield an Arrow batch at `ROWS` rows, or before it would have more than `GATHERED_BYTES_MAX`.
        """
        reader = RecordReader(batch, 0, header)
        if header.base_offset < self._range.start:
            reader.skip_to(self._range.start)
        before = reader.bytes_read
        while (columns := reader.arrow(ROWS - self.rows)).count:
            count = columns.count
            size, before = reader.bytes_read - before, reader.bytes_read
            if columns.offsets[-1] >= self._range.end:
                count = bisect_left(columns.offsets, self._range.end)
            if count:
                if self.rows and self._bytes + size > GATHERED_BYTES_MAX:
                    yield self.take()
                self._bytes += size
                self._parts.append(self._rows(columns, header.timestamp_type).slice(0, count))
                self.rows += count
            if self.rows >= ROWS:
                yield self.take()
            if count < columns.count:
                return

    def take(self) -> pa.RecordBatch:
        """Return the gathered rows as one batch, in exactly the schema that Spark has."""
        parts = self._parts
        self._parts, self._bytes, self.rows = [], 0, 0
        if len(parts) == 1:
            return parts[0]
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    def _rows(self, columns: ArrowColumns, timestamp_type: int) -> pa.RecordBatch:
        count = columns.count
        milliseconds = pa.Array.from_buffers(_MILLISECONDS, count, [None, pa.py_buffer(columns.timestamps)])
        arrays = [
            _binary(columns.keys, count),
            _binary(columns.values, count),
            pa.repeat(self._range.topic, count),
            pa.repeat(pa.scalar(self._range.partition, pa.int32()), count),
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.offsets)]),
            milliseconds.cast(_TIMESTAMP),
            pa.repeat(pa.scalar(timestamp_type, pa.int32()), count),
        ]
        if len(self._schema) > len(arrays):
            headers = [_headers(each) for each in columns.headers] if columns.headers else [None] * count
            arrays.append(pa.array(headers, pa.list_(_HEADER)))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _binary(column: BinaryColumn, count: int) -> pa.Array:
    valid = None if column.valid is None else pa.py_buffer(column.valid)
    buffers = [valid, pa.py_buffer(column.ends), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, column.nulls)


def _headers(headers: Headers) -> list[dict[str, object]] | None:
    """Return null for a record without headers, as Spark's Kafka source does."""
    return [{"key": name, "value": value} for name, value in headers] or None
