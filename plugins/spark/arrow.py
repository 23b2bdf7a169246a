"""A range of the log as Arrow record batches, decoded a whole record batch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import chain

import pyarrow as pa

from logd.client import Admin, BatchFetcher, Client, Fetched, TopicPartition
from logd.errors import LogTruncated, OffsetOutOfRange, RequestTimedOut
from logd.records import BatchHeader, Columns, check_crc, decode_columns
from plugins.spark.errors import DataLost
from plugins.spark.options import ReadOptions
from plugins.spark.ranges import LogRange

ROWS = 10_000
"""Rows an Arrow batch aims at: below 1,000 the cost per batch shows, above 10,000 nothing is gained."""

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
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


def read_arrow(options: ReadOptions, wanted: LogRange) -> Iterator[pa.RecordBatch]:
    """The records of one range, in order, about `ROWS` a batch.

    Runs an event loop of its own, step by step. Raises DataLost when the log no longer holds the range, or
    was truncated while it was read (without failOnDataLoss: what it still holds), KafkaError and
    CorruptRecordBatch.
    """
    builder = _Builder(wanted, options.include_headers)
    with asyncio.Runner() as runner:
        chunks = _fetched(options, wanted)
        while True:
            fetched = runner.run(_next(chunks))
            if fetched is None:
                break
            for header, batch in fetched.batches():
                check_crc(batch, 0, header)
                builder.add(header, decode_columns(batch))
                if builder.rows >= ROWS:
                    yield builder.take()
    if builder.rows:
        yield builder.take()


async def _next(chunks: AsyncIterator[Fetched]) -> Fetched | None:
    return await anext(chunks, None)


async def _fetched(options: ReadOptions, wanted: LogRange) -> AsyncIterator[Fetched]:
    tp, position = TopicPartition(wanted.topic, wanted.partition), wanted.start
    async with (
        Client(options.bootstrap_servers, **options.client) as client,
        BatchFetcher(client, isolation_level=options.isolation_level, **options.fetch) as fetcher,
    ):
        fetcher.assign({tp: position})
        while position < wanted.end:
            try:
                chunks = await fetcher.fetch(timeout_ms=options.poll_timeout_ms)
            except LogTruncated as e:
                # Rows before the position were given out already: go on at the position, or fail.
                if options.fail_on_data_loss:
                    available = e.diverging_offset if e.diverging_offset >= 0 else e.start
                    raise DataLost(tp.topic, tp.partition, position, available) from e
                fetcher.seek(tp, position)
                continue
            except OffsetOutOfRange as e:
                if options.fail_on_data_loss or e.start < 0:  # start unknown: no broker answers
                    available = e.start if position < e.start else e.end
                    raise DataLost(tp.topic, tp.partition, position, available) from e
                if not position < e.start < wanted.end:
                    return
                position = e.start
                fetcher.seek(tp, position)
                continue
            if not chunks:
                end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
                if end >= wanted.end:
                    raise RequestTimedOut(
                        f"{tp}: no records from {position} on for {options.poll_timeout_ms} ms"
                    )
                if options.fail_on_data_loss:
                    raise DataLost(tp.topic, tp.partition, wanted.end, end)
                return
            for chunk in chunks:
                position = chunk.next_offset
                yield chunk


class _Builder:
    """Gathers the columns of several record batches, cut to the range."""

    def __init__(self, wanted: LogRange, include_headers: bool) -> None:
        self._range = wanted
        self._schema = pa.schema([*FIELDS, HEADERS_FIELD] if include_headers else FIELDS)
        self._parts: list[Columns] = []
        self._types: list[tuple[int, int]] = []
        self.rows = 0

    def add(self, header: BatchHeader, columns: Columns) -> None:
        if header.base_offset < self._range.start or header.next_offset > self._range.end:
            columns = _cut(columns, self._range)
        if columns.offsets:
            self._parts.append(columns)
            self._types.append((header.timestamp_type, len(columns.offsets)))
            self.rows += len(columns.offsets)

    def take(self) -> pa.RecordBatch:
        """What was gathered, as one batch of exactly the schema Spark was told."""
        parts, rows = self._parts, self.rows
        milliseconds = pa.array(
            chain.from_iterable(p.timestamps for p in parts), pa.timestamp("ms", tz="UTC")
        )
        arrays = [
            pa.array(chain.from_iterable(p.keys for p in parts), pa.binary()),
            pa.array(chain.from_iterable(p.values for p in parts), pa.binary()),
            pa.repeat(self._range.topic, rows),
            pa.repeat(pa.scalar(self._range.partition, pa.int32()), rows),
            pa.array(chain.from_iterable(p.offsets for p in parts), pa.int64()),
            milliseconds.cast(_TIMESTAMP),
            pa.array(chain.from_iterable([kind] * count for kind, count in self._types), pa.int32()),
        ]
        if len(self._schema) > len(arrays):
            headers = (_headers(h) for h in chain.from_iterable(p.headers for p in parts))
            arrays.append(pa.array(headers, pa.list_(_HEADER)))
        self._parts, self._types, self.rows = [], [], 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _headers(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, object]] | None:
    """Null for a record without headers, as in Spark's Kafka source."""
    return [{"key": name, "value": value} for name, value in headers] or None


def _cut(columns: Columns, wanted: LogRange) -> Columns:
    """The rows whose offsets lie in the range; offsets ascend."""
    inside = [i for i, offset in enumerate(columns.offsets) if wanted.start <= offset < wanted.end]
    if not inside:
        return Columns()
    span = slice(inside[0], inside[-1] + 1)
    return Columns(
        columns.offsets[span],
        columns.timestamps[span],
        columns.keys[span],
        columns.values[span],
        columns.headers[span],
    )
