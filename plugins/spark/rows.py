"""Converts records to rows of a table: the record's columns, the value's, the partition columns."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from plugins.spark.settings import RowShape

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp")
INFERRED_FROM = 10_000
"""Number of rows of the first batch from which a schema is inferred."""
_CORRUPT = "_corrupt_record"
"""The column Spark infers for values that are no JSON."""


def value_schema_of(
    spark: SparkSession, records: DataFrame, shape: RowShape, earlier: str | None
) -> StructType | None:
    """Return the schema of JSON values: the declared one, else the `earlier` one, else an inferred one.

    The caller stores an inferred schema and passes it as `earlier`, so that every batch has the same columns.
    A batch without any object (tombstones) gives a schema without fields. Do not store that one: the fields
    of all later values would be dropped.
    """
    if shape.value_format != "json":
        return None
    if shape.value_schema is not None:
        return _struct(StructType.fromDDL(shape.value_schema))
    if earlier is not None:
        return StructType.fromJson(json.loads(earlier))
    rows = records.select(F.col("value").cast("string")).limit(INFERRED_FROM).collect()
    sample = spark.sparkContext.parallelize([row[0] for row in rows if row[0] is not None], 1)
    inferred = spark.read.json(sample).schema
    return StructType([field for field in inferred.fields if field.name != _CORRUPT])


def _struct(schema: object) -> StructType:
    if not isinstance(schema, StructType):
        raise ValueError(f"value.schema must name columns: `carrier STRING, delay DOUBLE`, not {schema}")
    return schema


def shape_rows(records: DataFrame, shape: RowShape, value_schema: StructType | None) -> DataFrame:
    """Return the table's rows: one per record, also for tombstones (their fields are null).

    Raises ValueError if a field of the value has the name of a column of the record, or a partition column
    that of either. `Key` and `key` are the same name unless spark.sql.caseSensitive is set.
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
    used = set(map(fold, columns))
    clashes = sorted(name for name in fields if fold(name) in used)
    if clashes:
        raise ValueError(
            f"the value's fields {', '.join(clashes)} are called like columns of the record: "
            "set record.columns.prefix"
        )
    columns.update(fields)
