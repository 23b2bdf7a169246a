"""The latest view of a table: the current value of each key, for topics of updates."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from plugins.spark.columns import GENERATION, TOMBSTONE, record_prefix
from plugins.spark.formats import open_table
from plugins.spark.reading import read_table
from plugins.spark.table import table_columns


def read_latest(spark: SparkSession, path: Path) -> DataFrame:
    """Return the latest rows of the table at `path` (see `latest_rows`)."""
    state = open_table(path).latest()
    prefix = "" if state is None else record_prefix(table_columns(state)) or ""
    return latest_rows(read_table(spark, path, hidden=True), prefix)


def latest_rows(table: DataFrame, prefix: str) -> DataFrame:
    """Return the newest row of each key that no tombstone has deleted. Records without a key are left out.

    `table` has the hidden columns, the result has not. `prefix` is that of the record's columns.
    """
    key = [F.col(f"`{prefix}{name}`") for name in ("topic", "partition", "key")]
    age = F.struct(F.coalesce(F.col(f"`{prefix}{GENERATION}`"), F.lit(0)), F.col(f"`{prefix}offset`"))
    newest = table.where(key[-1].isNotNull()).groupBy(*key).agg(F.max_by(F.struct("*"), age).alias("_row"))
    is_deleted = F.coalesce(F.col(f"`{prefix}{TOMBSTONE}`"), F.lit(False))
    return newest.select("_row.*").where(~is_deleted).drop(prefix + TOMBSTONE, prefix + GENERATION)
