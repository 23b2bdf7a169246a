"""Reads the sink's table: only the committed files, not others in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from plugins.spark.columns import record_prefix
from plugins.spark.manifest import DataFile
from plugins.spark.rows import hidden_fields
from plugins.spark.settings import BATCH_COLUMN, file_url, local_path
from plugins.spark.table import ParquetTable

_GLOB = re.compile(r"[*?\[\]{}\\]")
"""Characters Spark would read as patterns in a path."""


def read_table(spark: SparkSession, path: Path | str, *, hidden: bool = False) -> DataFrame:
    """Return the committed rows of the table at `path`; a later commit needs a later call.

    With `hidden` the rows have the columns that only the latest view needs, too (see `columns`).
    Raises FileNotFoundError if there is no table, or nothing was written to it yet.
    """
    table = ParquetTable(local_path(str(path)))
    manifest = table.latest()
    if manifest is None or manifest.table_schema is None:
        raise FileNotFoundError(f"{path}: no committed table")
    schema = StructType.fromJson(json.loads(manifest.table_schema))
    if hidden:
        schema = StructType([*schema.fields, *hidden_fields(record_prefix(schema.names) or "")])
    return read_files(spark, table, table.files(), schema)


def read_files(
    spark: SparkSession, table: ParquetTable, files: Sequence[DataFile], schema: StructType
) -> DataFrame:
    """Return the rows of some of the table's files, with the columns of `schema`."""
    if not files:
        return spark.createDataFrame([], schema)
    paths = [_GLOB.sub(r"\\\g<0>", file_url(table.path / file.path)) for file in files]
    with_batch = StructType([*schema.fields, StructField(BATCH_COLUMN, StringType())])
    reader = spark.read.schema(with_batch).option("basePath", file_url(table.data_path))
    return reader.parquet(*paths).drop(BATCH_COLUMN)
