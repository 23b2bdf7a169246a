"""The data source `format("millstream")`: the log as a DataFrame like Spark's Kafka source's, and writers.

    spark.read.format("millstream")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "flights")
        .load()

Executors read the log themselves, in the Python worker, a range of offsets per task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_client.errors import ConfigError
from plugins.spark.log_range import LogRange
from plugins.spark.option_values import OptionValues
from plugins.spark.options import ReadOptions, parse_options
from plugins.spark.range_partition import RangePartition
from plugins.spark.ranges import find_ranges
from plugins.spark.splitting import split_ranges
from plugins.spark.stream_options import parse_stream_options
from plugins.spark.worker_connections import CONNECTIONS
from plugins.spark.write_options import parse_stream_write_options, parse_write_options
from plugins.spark.write_schema import HEADERS, check_schema
from plugins.spark.writer import MillstreamWriter

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: list[tuple[str, DataType]] = [
    ("key", BinaryType()),
    ("value", BinaryType()),
    ("topic", StringType()),
    ("partition", IntegerType()),
    ("offset", LongType()),
    ("timestamp", TimestampType()),
    ("timestampType", IntegerType()),
]


class MillstreamDataSource(DataSource):
    """The data source for batches and streams. Spark finds it through the module `pyspark_millstream`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "millstream"

    def schema(self) -> StructType:
        """Return the columns of Spark's Kafka source, with `headers` if includeHeaders is set."""
        fields = [StructField(name, kind) for name, kind in _COLUMNS]
        # Spark does not say yet whether a batch or a stream is read, so other options are parsed later.
        if OptionValues(self.options).boolean("includeHeaders", False):
            fields.append(StructField("headers", HEADERS))
        return StructType(fields)

    def reader(self, schema: StructType) -> MillstreamReader:
        """Return a reader for the options; `schema` is that of `schema()`."""
        return MillstreamReader(parse_options(dict(self.options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a stream reader for the options. Raises ConfigError before PySpark 4.2."""
        try:
            from plugins.spark.stream_reader import MillstreamStreamReader
        except ImportError as error:
            raise ConfigError("pyspark", pyspark.__version__, "a stream needs 4.2 or later") from error
        return MillstreamStreamReader(parse_stream_options(dict(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a batch writer. Raises UnsupportedColumns, and ConfigError for options and save modes."""
        if overwrite:
            raise ConfigError("mode", "overwrite", 'is not allowed: a log only grows; use mode("append")')
        options = parse_write_options(dict(self.options))
        check_schema(schema, options.topic)
        return MillstreamWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a stream's writer; in the output mode `complete` each batch's rows are appended, too.

        Raises UnsupportedColumns and ConfigError, also before PySpark 4.2.
        """
        try:
            from plugins.spark.stream_writer import MillstreamStreamWriter
        except ImportError as error:
            raise ConfigError("pyspark", pyspark.__version__, "a stream needs 4.2 or later") from error
        options = parse_stream_write_options(dict(self.options))
        check_schema(schema, options.topic)
        return MillstreamStreamWriter(options)


class MillstreamReader(DataSourceReader):
    """A reader that plans the tasks and reads each range. Spark pickles it, so it has only the options."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        """Return ranges of explicit offsets, resolved now, or one partition without a range."""
        resolved = plan_ranges(self.options)
        ranges = split_ranges(resolved, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangePartition(r) for r in ranges] or [RangePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range as Arrow batches."""
        # Imported here, as planning does not need pyarrow.
        from plugins.spark.arrow import read_arrow

        return iter(()) if partition.value is None else read_arrow(self.options, partition.value)


def plan_ranges(options: ReadOptions) -> list[LogRange]:
    """Return the ranges of a batch read, by a connection that the next plan reuses."""
    if options.assigned == {}:
        return []
    with CONNECTIONS.borrow(options.bootstrap_servers, options.client, {}) as connection:

        async def find() -> list[LogRange]:
            return await find_ranges(await connection.client(), options)

        return connection.run(find())
