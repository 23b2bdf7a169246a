"""Reads the sink's table: only the committed files, not others in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from plugins.spark.columns import record_prefix
from plugins.spark.formats import open_table
from plugins.spark.manifest import DataFile
from plugins.spark.rows import hidden_fields
from plugins.spark.settings import file_url, local_path
from plugins.spark.sink_table import DATA, SinkTable

_GLOB = re.compile(r"[*?\[\]{}\\]")
"""Characters Spark would read as patterns in a path."""


def read_table(spark: SparkSession, path: Path | str, *, hidden: bool = False) -> DataFrame:
    """Return the committed rows of the table at `path`; a later commit needs a later call.

    With `hidden` the rows have the columns that only the latest view needs, too (see `columns`).
    Raises FileNotFoundError if there is no table, or nothing was written to it yet.
    """
    table = open_table(local_path(str(path)))
    manifest = table.latest()
    if manifest is None or manifest.table_schema is None:
        raise FileNotFoundError(f"{path}: no committed table")
    schema = StructType.fromJson(json.loads(manifest.table_schema))
    if hidden:
        schema = StructType([*schema.fields, *hidden_fields(record_prefix(schema.names) or "")])
    return read_files(spark, table, table.files(), schema)


def read_files(
    spark: SparkSession, table: SinkTable, files: Sequence[DataFile], schema: StructType
) -> DataFrame:
    """Return the rows of some of the table's files, with the columns of `schema`."""
    if not files:
        return spark.createDataFrame([], schema)
    ours = [file for file in files if Path(file.path).parts[0] == DATA]
    others = [file for file in files if Path(file.path).parts[0] != DATA]
    parts = []
    if ours:
        with_batch = StructType([*schema.fields, StructField(table.batch_column, StringType())])
        rows = _read_below(spark, table, table.path / DATA, ours, with_batch)
        parts.append(rows.drop(table.batch_column))
    if others:  # programs that rewrite files of Delta tables know no batches
        parts.append(_read_below(spark, table, table.path, others, schema))
    return reduce(DataFrame.unionByName, parts)


def _read_below(
    spark: SparkSession, table: SinkTable, base: Path, files: Sequence[DataFile], schema: StructType
) -> DataFrame:
    """Return the rows of files whose partition columns are in the folder names below `base`."""
    paths = [_GLOB.sub(r"\\\g<0>", file_url(table.path / file.path)) for file in files]
    return spark.read.schema(schema).option("basePath", file_url(base)).parquet(*paths)
