"""`spark.read.format("millstream")`: the log as a DataFrame, as Spark's Kafka source gives it.

    spark.read.format("millstream")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "flights")
        .load()

Executors read the log themselves, in the Python worker, a range of offsets per task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from plugins.spark.options import ReadOptions, parse_options
from plugins.spark.ranges import LogRange, resolve_ranges, split_ranges

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
_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


class MillstreamDataSource(DataSource):
    """Batch reads. Found by Spark through the module `pyspark_millstream`."""

    @classmethod
    def name(cls) -> str:
        """The word for `format(…)`."""
        return "millstream"

    def schema(self) -> StructType:
        """Spark's Kafka columns; `headers` with the option includeHeaders."""
        fields = [StructField(name, kind) for name, kind in _COLUMNS]
        if self._parsed().include_headers:
            fields.append(StructField("headers", _HEADERS))
        return StructType(fields)

    def reader(self, schema: StructType) -> MillstreamReader:
        """A reader for the options; `schema` is the one above."""
        return MillstreamReader(self._parsed())

    def _parsed(self) -> ReadOptions:
        return parse_options(dict(self.options))


class RangePartition(InputPartition):
    """One task's range of offsets; None where there is nothing to read at all."""

    def __init__(self, wanted: LogRange | None) -> None:
        super().__init__(wanted)


class MillstreamReader(DataSourceReader):
    """Plans the tasks, and reads one. Pickled into the tasks, so it holds the options only."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        """Ranges of explicit offsets, resolved now; one empty range where there are none."""
        found = asyncio.run(resolve_ranges(self.options))
        ranges = split_ranges(found, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangePartition(r) for r in ranges] or [RangePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range as Arrow batches."""
        # Not above: planning does without pyarrow.
        from plugins.spark.arrow import read_arrow

        return iter(()) if partition.value is None else read_arrow(self.options, partition.value)
