"""Checks the columns of a DataFrame that is written to topics, with the error texts of Spark's Kafka sink."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from plugins.spark.errors import UnsupportedColumns

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: dict[str, tuple[DataType, ...]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (DoubleType(), TimestampType()),
}
"""The columns that become parts of a record. Others are ignored, as in Spark's Kafka sink."""


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raise UnsupportedColumns if a column is missing or has another type.

    `topic`: the option; with it the column `topic` is not looked at.
    """
    columns = {field.name: field.dataType for field in schema.fields}
    if topic is None and "topic" not in columns:
        raise UnsupportedColumns(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    if "value" not in columns:
        raise UnsupportedColumns("Required attribute 'value' not found")
    for name, allowed in _TYPES.items():
        column = columns.get(name)
        if column is None or (name == "topic" and topic is not None):
            continue
        if not any(_is_same(column, each) for each in allowed):
            names = " or ".join(each.simpleString() for each in allowed)
            raise UnsupportedColumns(
                f"{name} attribute unsupported type {column.simpleString()}. {name} must be a(n) {names}"
            )


def _is_same(column: DataType, allowed: DataType) -> bool:
    """Return True if the types are equal, whatever may be null."""
    return column.simpleString() == allowed.simpleString()
