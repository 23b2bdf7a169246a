"""The calls of the driver process: `version`, `write` and `sql` take a session and JSON arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from plugins.spark.calls import PlannedRange, WriteRequest, WriteResult, WrittenRange
from plugins.spark.manifest import DataFile
from plugins.spark.reading import read_files, read_table
from plugins.spark.rows import shape_rows, value_schema_of
from plugins.spark.settings import PartitionColumn, RowShape, file_url, local_path
from plugins.spark.table import ParquetTable


def version(spark: SparkSession) -> str:
    """Return Spark's version; the driver responds once Spark has started."""
    return str(spark.version)


def write(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    """Read ranges of the log and write them as Parquet (see `WriteRequest`). Return a `WriteResult`."""
    parsed = msgspec.convert(request, WriteRequest)
    records = _read_ranges(spark, parsed)
    value_schema = value_schema_of(spark, records, parsed.shape, parsed.value_schema)
    rows = shape_rows(records, parsed.shape, value_schema)
    if parsed.table_schema is not None:
        _check_earlier_rows(spark, parsed, StructType.fromJson(json.loads(parsed.table_schema)), rows.schema)
    observed = Observation()
    partition_columns = [column.name for column in parsed.shape.partition_by]
    writer = rows.observe(observed, F.count(F.lit(1)).alias("rows"))
    if partition_columns:
        writer = writer.repartition(*partition_columns)
    writer.write.partitionBy(*partition_columns).parquet(file_url(Path(parsed.directory)))
    result = WriteResult(
        rows_read=_observed_rows(observed),
        files=_written_files(parsed.directory, parsed.file_root),
        ranges=_written_ranges(parsed.directory, parsed.shape),
        value_schema=value_schema.json() if value_schema is not None and value_schema.fields else None,
        table_schema=rows.schema.json(),
    )
    return dict(msgspec.to_builtins(result))


def warm_up(spark: SparkSession, folder: Path) -> None:
    """Write an empty batch, so that the seconds of loading and compiling are not part of the first one."""
    shape = RowShape(
        value_schema="a STRING", partition_by=(PartitionColumn(name="p", expression="partition"),)
    )
    nothing = WriteRequest(
        bootstrap_servers="nobody:9",
        ranges=(),
        directory=str(folder / "warm-up"),
        file_root=str(folder),
        shape=shape,
    )
    write(spark, msgspec.to_builtins(nothing))


def sql(spark: SparkSession, query: str, tables: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
    """Return the first rows of a query over the sink's tables, with views `<name>` and `<name>_latest`."""
    for name, location in tables.items():
        table = read_table(spark, local_path(location))
        table.createOrReplaceTempView(name)
        latest_rows(table).createOrReplaceTempView(f"{name}_latest")
    return [row.asDict(recursive=True) for row in spark.sql(query).limit(limit).collect()]


def latest_rows(table: DataFrame) -> DataFrame:
    """Return each key's row with the highest offset, for a topic of updates (column names unprefixed)."""
    if not {"topic", "partition", "key", "offset"} <= set(table.columns):
        return table
    newest = table.groupBy("topic", "partition", "key").agg(F.max_by(F.struct("*"), "offset").alias("row"))
    return newest.select("row.*")


def _check_earlier_rows(spark: SparkSession, request: WriteRequest, old: StructType, new: StructType) -> None:
    """Raise ValueError if columns have new types and Spark cannot read the newest file with them.

    Spark widens some types but not others. So the read is tried before the commit, as a committed table of
    mixed types might not be readable at all.
    """
    before = {field.name: field.dataType for field in old}
    changed = [f for f in new if f.name in before and before[f.name] != f.dataType]
    if not changed:
        return
    table = ParquetTable(Path(request.file_root))
    try:
        read_files(spark, table, table.files()[-1:], new).write.format("noop").mode("overwrite").save()
    except (Py4JJavaError, PySparkException) as e:
        types = ", ".join(
            f"{f.name} was {before[f.name].simpleString()} and is {f.dataType.simpleString()}"
            for f in changed
        )
        raise ValueError(f"the table's rows cannot be read by the new types: {types}; take a new path") from e


def _observed_rows(observed: Observation) -> int:
    """Return the rows Spark counted. Its optimizer drops the observation of an empty read: that is 0."""
    try:
        return int(observed.get["rows"])
    except (KeyError, Py4JJavaError):
        return 0


def _read_ranges(spark: SparkSession, request: WriteRequest) -> DataFrame:
    def offsets(end: bool) -> str:
        chosen: dict[str, dict[str, int]] = {}
        for r in request.ranges:
            chosen.setdefault(r.topic, {})[str(r.partition)] = r.end if end else r.start
        return msgspec.json.encode(chosen).decode()

    return (
        spark.read.format("millstream")
        .options(**request.client_options)
        .option("kafka.bootstrap.servers", request.bootstrap_servers)
        .option("assign", msgspec.json.encode(_assigned(request.ranges)).decode())
        .option("startingOffsets", offsets(end=False))
        .option("endingOffsets", offsets(end=True))
        .option("failOnDataLoss", str(request.fail_on_data_loss).lower())
        .option("failOnUnreadableBatch", str(request.fail_on_unreadable_batch).lower())
        .load()
    )


def _assigned(ranges: tuple[PlannedRange, ...]) -> dict[str, list[int]]:
    assigned: dict[str, list[int]] = {}
    for r in ranges:
        assigned.setdefault(r.topic, []).append(r.partition)
    return assigned


def _parquet_paths(directory: str) -> list[Path]:
    return sorted(path for path in Path(directory).rglob("*.parquet") if not path.name.startswith((".", "_")))


def _written_files(directory: str, root: str) -> tuple[DataFile, ...]:
    """Sync the files. Return them with the numbers of rows in their footers."""
    files = []
    for path in _parquet_paths(directory):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        rows = pq.read_metadata(path).num_rows
        files.append(DataFile(path=str(path.relative_to(root)), rows=rows, size=path.stat().st_size))
    return tuple(files)


def _written_ranges(directory: str, shape: RowShape) -> tuple[WrittenRange, ...]:
    """Return rows, first and last offset per topic-partition, read from the files and folder names.

    The table's partition columns are only in the folder names.
    """
    topic, partition, offset = (shape.record_prefix + name for name in ("topic", "partition", "offset"))
    paths = [str(path) for path in _parquet_paths(directory)]
    if not paths:
        return ()
    kinds = {topic: pa.string(), partition: pa.int32(), offset: pa.int64()}
    in_folders = [(c.name, kinds[c.name]) for c in shape.partition_by if c.name in kinds]
    folders = ds.partitioning(pa.schema(in_folders), flavor="hive")
    files = ds.dataset(paths, format="parquet", partitioning=folders, partition_base_dir=directory)
    columns = files.to_table(columns=[topic, partition, offset])
    counted = columns.group_by([topic, partition]).aggregate(
        [(offset, "count"), (offset, "min"), (offset, "max")]
    )
    return tuple(
        WrittenRange(
            topic=row[topic],
            partition=row[partition],
            rows=row[f"{offset}_count"],
            first_offset=row[f"{offset}_min"],
            last_offset=row[f"{offset}_max"],
        )
        for row in counted.to_pylist()
    )
