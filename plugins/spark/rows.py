"""Converts records to rows of a table: the record's columns, the value's, the partition columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from plugins.spark.columns import GENERATION, RECORD_COLUMNS, TOMBSTONE
from plugins.spark.inference import case_folding
from plugins.spark.settings import RowShape
from plugins.spark.value_schemas import Fold

_UNFIT = "__unfit_value"
"""The field that `from_json` fills with values that are no object, or have a field of another type."""
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for null in a partition column."""


def hidden_fields(prefix: str) -> list[StructField]:
    """Return the columns that are in the files, but not among those that readers of the table see."""
    return [StructField(prefix + TOMBSTONE, BooleanType()), StructField(prefix + GENERATION, IntegerType())]


def shape_rows(
    records: DataFrame,
    shape: RowShape,
    value_schema: StructType | None,
    *,
    generations: Mapping[str, int] | None = None,
    observed: Observation | None = None,
) -> DataFrame:
    """Return the table's rows: one per record, also for tombstones (their fields are null).

    `observed` gets the number of rows, of values that do not fit, and of values
    with fields that have no column. Raises ValueError if a field of the value has the name of a column of the
    record, or a partition column that of either. `Key` and `key` are the same name unless
    spark.sql.caseSensitive is set.
    """
    fold = case_folding(records.sparkSession)
    text = F.col("value").cast("string")
    columns = {shape.record_prefix + name: F.col(name) for name in RECORD_COLUMNS}
    if shape.key_format == "string":
        columns[shape.record_prefix + "key"] = F.col("key").cast("string")
    hidden = _hidden(shape.record_prefix, generations or {})
    parsed = records
    if value_schema is not None:
        wide = StructType([*value_schema.fields, StructField(_UNFIT, StringType())])
        options = {"columnNameOfCorruptRecord": _UNFIT}
        parsed = records.withColumn("parsed", F.from_json(text, wide, options))
        fields = {field.name: F.col("parsed").getField(field.name) for field in value_schema.fields}
    else:
        fields = {"value": text if shape.value_format == "string" else F.col("value")}
    _add(columns, fields, fold, hidden)
    if observed is not None:
        read_fields = value_schema.names if value_schema is not None and shape.value_schema is None else None
        parsed = parsed.observe(observed, *_observations(value_schema is not None, read_fields))
    rows = parsed.select(*((columns | hidden)[name].alias(name) for name in (*columns, *hidden)))
    for partition in shape.partition_by:
        if fold(partition.name) in map(fold, columns) and partition.expression != partition.name:
            raise ValueError(f"partition.by: there is a column {partition.name} already")
        rows = rows.withColumn(partition.name, F.expr(partition.expression))
        rows = rows.withColumn(
            partition.name, _as_folder(partition.name, rows.schema[partition.name].dataType)
        )
    return rows


def _hidden(prefix: str, generations: Mapping[str, int]) -> dict[str, Column]:
    generation = F.lit(0)
    for topic, number in generations.items():
        generation = F.when(F.col("topic") == topic, number).otherwise(generation)
    return {
        prefix + TOMBSTONE: F.col("value").isNull(),
        prefix + GENERATION: generation.cast("int"),
    }


def _as_folder(name: str, kind: DataType) -> Column:
    """Return the column with one value for all values that Spark writes to the same folder.

    Spark writes a folder per value, and fails if two values have the same folder name: "" and null, 0.0 and
    -0.0, the two hours of one name in autumn, keys that are not UTF-8.
    """
    column = F.col(name)
    if isinstance(kind, StringType):
        text = F.make_valid_utf8(column)
        return F.when(~text.isin("", NULL_FOLDER), text)
    if isinstance(kind, BinaryType):
        text = F.make_valid_utf8(column.cast("string"))
        return F.when(~text.isin("", NULL_FOLDER), text).cast("binary")
    if isinstance(kind, FloatType | DoubleType):
        return F.when(column == 0, F.lit(0.0)).otherwise(column).cast(kind)
    if isinstance(kind, TimestampType | TimestampNTZType):
        return column.cast("string").cast(kind)
    return column


def _observations(is_json: bool, read_fields: Iterable[str] | None) -> list[Column]:
    """Return aggregates over the records and their parsed values; `read_fields` have a column."""
    observations = [F.count(F.lit(1)).alias("rows")]
    if is_json:
        where = F.concat_ws("", "topic", F.lit("-"), "partition", F.lit(" offset "), "offset")
        observations += _count_of(F.col("parsed").getField(_UNFIT).isNotNull(), "unfit", where)
    if read_fields is not None:
        names = F.json_object_keys(F.col("value").cast("string"))
        others = F.array_except(names, F.array(*(F.lit(name).cast("string") for name in read_fields)))
        where = F.concat_ws(" of ", F.get(others, F.lit(0)), "topic")
        observations += _count_of(F.size(others) > 0, "unknown", where)
    return observations


def _count_of(condition: Column, name: str, example: Column) -> list[Column]:
    return [F.count_if(condition).alias(name), F.max(F.when(condition, example)).alias(f"{name}_example")]


def _add(columns: dict[str, Column], fields: Mapping[str, Column], fold: Fold, hidden: Iterable[str]) -> None:
    used = set(map(fold, [*columns, *hidden]))
    clashes = sorted(name for name in fields if fold(name) in used)
    if clashes:
        raise ValueError(
            f"the value's fields {', '.join(clashes)} are called like columns of the record: "
            "set record.columns.prefix"
        )
    columns.update(fields)
