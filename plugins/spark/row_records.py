"""Makes records of rows: the columns of an Arrow batch, as Spark's Kafka sink understands them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa

from kafka_client.records import NewRecord
from plugins.spark.errors import InvalidRow

Row = tuple[int | None, NewRecord]
"""The partition of a row, None if the partitioner chooses it, and its record."""


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> dict[str, list[Row]]:
    """Return the rows of each topic, in their order. `topic`: that of all rows, None for the column.

    Raises InvalidRow for a null topic, a negative partition or timestamp, and a header without a name.
    """
    rows = list(zip(_partitions(batch), _records(batch), strict=True))
    if topic is not None:
        return {topic: rows} if rows else {}
    by_topic: dict[str, list[Row]] = {}
    for name, row in zip(batch.column("topic").to_pylist(), rows, strict=True):
        if name is None:
            raise InvalidRow(
                "null topic present in the data. Use the topic option for setting a default topic."
            )
        by_topic.setdefault(name, []).append(row)
    return by_topic


def _records(batch: pa.RecordBatch) -> Iterator[NewRecord]:
    columns = _timestamps(batch), _bytes(batch, "key"), _bytes(batch, "value"), _headers(batch)
    return zip(*columns, strict=True)


def _bytes(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    column = batch.column(name)
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _partitions(batch: pa.RecordBatch) -> list[int | None]:
    if "partition" not in batch.schema.names:
        return [None] * batch.num_rows
    partitions: list[int | None] = batch.column("partition").to_pylist()
    for partition in partitions:
        if partition is not None and partition < 0:
            raise InvalidRow(
                f"Invalid partition: {partition}. Partition number should always be non-negative or null."
            )
    return partitions


def _timestamps(batch: pa.RecordBatch) -> Iterable[int]:
    now = time.time_ns() // 1_000_000
    if "timestamp" not in batch.schema.names:
        return [now] * batch.num_rows
    column = batch.column("timestamp")
    if pa.types.is_floating(column.type):  # seconds, as in a cast to Spark's timestamp
        microseconds = [None if v is None else int(v * 1_000_000) for v in column.to_pylist()]
    else:
        microseconds = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    for each in microseconds:
        if each is not None and each < 0:
            raise InvalidRow(
                f"Invalid timestamp: {each // 1000}. Timestamp should always be non-negative or null."
            )
    return [now if each is None else each // 1000 for each in microseconds]


def _headers(batch: pa.RecordBatch) -> Iterable[tuple[tuple[str, bytes | None], ...]]:
    if "headers" not in batch.schema.names:
        return [()] * batch.num_rows
    return [_pairs(headers or ()) for headers in batch.column("headers").to_pylist()]


def _pairs(headers: Iterable[dict[str, bytes | str | None] | None]) -> tuple[tuple[str, bytes | None], ...]:
    pairs = []
    for header in headers:
        if header is None or header["key"] is None:
            raise InvalidRow("Null header keys are not permitted")
        pairs.append((header["key"], header["value"]))
    return tuple(pairs)  # type: ignore[arg-type]  # the schema was checked
