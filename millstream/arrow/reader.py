"""`millstream.read`: topics as a stream of Arrow record batches, for Polars, DuckDB, pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from kafka_client import IsolationLevel
from kafka_client.errors import ConfigError
from millstream.arrow.bounds import Bound, find_ranges
from millstream.arrow.decoding import ColumnDecoder, decode_batch
from millstream.data_types.data_type import DataType
from millstream.data_types.find import find_type
from millstream.data_types.names import TypeName
from millstream.data_types.schema_options import SchemaOptions
from plugins.spark.arrow import read_arrow, record_schema
from plugins.spark.log_range import LogRange
from plugins.spark.options import ReadOptions, parse_options
from plugins.spark.worker_connections import WorkerConnections

T = TypeVar("T")


def read(
    topics: str | Sequence[str],
    bootstrap_servers: str,
    *,
    start: Bound = "earliest",
    end: Bound = "latest",
    key: str = "bytes",
    value: str = "bytes",
    headers: bool = False,
    isolation_level: IsolationLevel = "read_uncommitted",
    key_arrow_type: pa.DataType | None = None,
    value_arrow_type: pa.DataType | None = None,
    schema_registry: str | None = None,
    key_schema: Path | str | None = None,
    value_schema: Path | str | None = None,
    key_message: str | None = None,
    value_message: str | None = None,
    fail_on_data_loss: bool = True,
    config: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Return the topics' records from `start` up to, but not including, `end`, as both are now.

    The columns are key, value, topic, partition, offset, timestamp (microseconds, UTC), timestampType (0
    create time, 1 log append time) and on request headers. Batches of about 10,000 rows are fetched as they
    are asked for, one partition after the other, each in the order of its offsets.

    start, end: see `Bound`. They only narrow what is read: an offset that the log does not have is no error.
    key, value: the data types, by the names that `millstream consume --value-type` takes.
    key_arrow_type, value_arrow_type: of JSON, Avro and Protobuf; fields that it does not name are left out.
        Without it the first batch decides, and records that do not fit are an error.
    schema_registry, key_schema, value_schema, key_message, value_message: of Avro and Protobuf, as the
        options of `millstream consume`.
    fail_on_data_loss: whether records that vanish while they are read are an error (DataLost).
    config: Kafka's keys of the client: `security.protocol`, `sasl.jaas.config`, `fetch.max.bytes` …

    It may be called where an event loop runs, since the reading has a thread of its own. Raises ConfigError
    for arguments, UsageError for a data type that needs more, KafkaError and RequestTimedOut; reading raises
    also WrongData for a record of another type, UnreadableBatch and DataLost.
    """
    options = parse_options(
        {
            "kafka.bootstrap.servers": bootstrap_servers,
            "subscribe": topics if isinstance(topics, str) else ",".join(topics),
            "includeHeaders": str(headers).lower(),
            "failOnDataLoss": str(fail_on_data_loss).lower(),
            "kafka.isolation.level": isolation_level,
            **{f"kafka.{name}": setting for name, setting in (config or {}).items()},
        }
    )
    key_source = SchemaOptions(schema_registry, Path(key_schema) if key_schema else None, key_message)
    value_source = SchemaOptions(schema_registry, Path(value_schema) if value_schema else None, value_message)
    decoders = (
        ColumnDecoder("key", _data_type("key", key, key_source), key_arrow_type),
        ColumnDecoder("value", _data_type("value", value, value_source), value_arrow_type),
    )
    reading = _Reading(options)
    try:
        ranges = reading.call(lambda: reading.plan(start, end))
        batches = reading.batches(ranges, decoders)
        return pa.RecordBatchReader.from_batches(*_with_schema(batches, decoders, headers))
    except BaseException:
        reading.close()
        raise


def _data_type(place: str, name: str, schemas: SchemaOptions) -> DataType:
    """Return the data type of that name. Raises ConfigError if there is none, UsageError if it needs more."""
    if name not in set(TypeName):
        raise ConfigError(place, name, f"one of {', '.join(TypeName)}")
    return find_type(TypeName(name), schemas)


def _with_schema(
    batches: Iterator[pa.RecordBatch], decoders: Sequence[ColumnDecoder], headers: bool
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the batches with their schema. Where a type is inferred, the first batch is read for it."""
    read_ahead: list[pa.RecordBatch] = []
    if any(decoder.arrow_type is None for decoder in decoders):
        read_ahead = list(islice(batches, 1))
    raw = record_schema(headers)
    for index, decoder in enumerate(decoders):
        raw = raw.set(index, raw.field(index).with_type(decoder.arrow_type or pa.null()))
    return raw, chain(read_ahead, batches)


class _Reading:
    """The thread in which a read fetches and decodes, and the connections that it uses.

    A caller may have an event loop at work, as notebooks do, and DuckDB asks from threads of its own.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._connections = WorkerConnections()
        self._thread = ThreadPoolExecutor(1, "millstream-read")

    def call(self, work: Callable[[], T]) -> T:
        """Do the work in the thread, and return its result."""
        return self._thread.submit(work).result()

    def plan(self, start: Bound, end: Bound) -> list[LogRange]:
        """Return the ranges to read. Called in the thread."""
        options = self._options
        with self._connections.borrow(options.bootstrap_servers, options.client, {}) as connection:

            async def find() -> list[LogRange]:
                return await find_ranges(await connection.client(), options, start, end)

            return connection.run(find())

    def batches(
        self, ranges: Sequence[LogRange], decoders: Sequence[ColumnDecoder]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the ranges, each read when it is asked for; then close."""
        decoded = self._decode(ranges, decoders)
        try:
            while (batch := self.call(lambda: next(decoded, None))) is not None:
                yield batch
        finally:
            self.close(decoded)

    def _decode(
        self, ranges: Sequence[LogRange], decoders: Sequence[ColumnDecoder]
    ) -> Generator[pa.RecordBatch]:
        for each in ranges:
            # Closed by hand: after an error the traceback would hold it, and its connection stay open.
            with closing(read_arrow(self._options, each, self._connections)) as batches:
                for batch in batches:
                    yield decode_batch(batch, *decoders)

    def close(self, decoded: Generator[pa.RecordBatch] | None = None) -> None:
        """Close what is open, in the thread: the caller does not wait for it."""

        def close() -> None:
            if decoded is not None:
                decoded.close()
            self._connections.close()

        with suppress(RuntimeError):  # Python is about to exit: the sockets close with it
            self._thread.submit(close)
        self._thread.shutdown(wait=False)
