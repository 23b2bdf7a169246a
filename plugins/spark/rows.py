"""Records of the log into rows of a table: the record's columns, the value's, the partition columns."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from plugins.spark.settings import RowShape

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp")
INFERRED_FROM = 10_000
"""Rows of the first batch a schema is inferred from."""
_CORRUPT = "_corrupt_record"
"""The column Spark infers for what is no JSON."""


def value_schema_of(
    spark: SparkSession, records: DataFrame, shape: RowShape, known: str | None
) -> StructType | None:
    """The schema JSON values are read by: the declared one, else the known one, else inferred.

    The caller keeps an inferred schema and gives it back as `known`: every batch has the same columns.
    A batch without any object (tombstones) gives a schema without fields, which is not to be kept: the
    fields of all later values would be left out.
    """
    if shape.value_format != "json":
        return None
    if shape.value_schema is not None:
        return _struct(StructType.fromDDL(shape.value_schema))
    if known is not None:
        return StructType.fromJson(json.loads(known))
    rows = records.select(F.col("value").cast("string")).limit(INFERRED_FROM).collect()
    sample = spark.sparkContext.parallelize([row[0] for row in rows if row[0] is not None], 1)
    inferred = spark.read.json(sample).schema
    return StructType([field for field in inferred.fields if field.name != _CORRUPT])


def _struct(schema: object) -> StructType:
    if not isinstance(schema, StructType):
        raise ValueError(f"value.schema must name columns: `carrier STRING, delay DOUBLE`, not {schema}")
    return schema


def shape_rows(records: DataFrame, shape: RowShape, value_schema: StructType | None) -> DataFrame:
    """The table's rows: one per record, tombstones too (their fields are null).

    ValueError when a field of the value is called like a column of the record, or a partition column like
    either; Spark does not tell `Key` from `key` unless spark.sql.caseSensitive is set.
    """
    fold = _case_folding(records.sparkSession)
    text = F.col("value").cast("string")
    columns = {shape.record_prefix + name: F.col(name) for name in RECORD_COLUMNS}
    if shape.key_format == "string":
        columns[shape.record_prefix + "key"] = F.col("key").cast("string")
    if value_schema is not None:
        parsed = records.withColumn("value", F.from_json(text, value_schema))
        fields = {field.name: F.col("value").getField(field.name) for field in value_schema.fields}
        _add(columns, fields, fold)
    else:
        parsed = records
        _add(columns, {"value": text if shape.value_format == "string" else F.col("value")}, fold)
    rows = parsed.select(*(column.alias(name) for name, column in columns.items()))
    for partition in shape.partition_by:
        if fold(partition.name) in map(fold, columns) and partition.expression != partition.name:
            raise ValueError(f"partition.by: there is a column {partition.name} already")
        rows = rows.withColumn(partition.name, F.expr(partition.expression))
    return rows


def _case_folding(spark: SparkSession) -> Callable[[str], str]:
    return str if spark.conf.get("spark.sql.caseSensitive") == "true" else str.lower


def _add(columns: dict[str, Column], fields: dict[str, Column], fold: Callable[[str], str]) -> None:
    taken = set(map(fold, columns))
    clashes = sorted(name for name in fields if fold(name) in taken)
    if clashes:
        raise ValueError(
            f"the value's fields {', '.join(clashes)} are called like columns of the record: "
            "set record.columns.prefix"
        )
    columns.update(fields)
