"""The calls of the driver process: `version`, `table_columns`, `write` and `sql`.

They take a session and JSON arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from plugins.spark.calls import WriteRequest
from plugins.spark.latest import read_latest
from plugins.spark.reading import read_table
from plugins.spark.settings import PartitionColumn, RowShape, local_path
from plugins.spark.writing import columns_without_records, write_batch


def version(spark: SparkSession) -> str:
    """Return Spark's version; the driver responds once Spark has started."""
    return str(spark.version)


def table_columns(spark: SparkSession, shape: dict[str, Any]) -> str:
    """Return the columns of rows of a shape, the hidden ones too (see `columns_without_records`)."""
    return columns_without_records(spark, msgspec.convert(shape, RowShape)).json()


def write(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    """Read ranges of the log and write them as Parquet (see `WriteRequest`). Return a `WriteResult`."""
    result = write_batch(spark, msgspec.convert(request, WriteRequest))
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
        path = local_path(location)
        read_table(spark, path).createOrReplaceTempView(name)
        read_latest(spark, path).createOrReplaceTempView(f"{name}_latest")
    return [row.asDict(recursive=True) for row in spark.sql(query).limit(limit).collect()]
