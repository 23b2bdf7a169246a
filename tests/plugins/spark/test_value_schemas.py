"""Columns for the values of several topics: nothing of one topic is dropped for another's sake."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from plugins.spark.errors import SchemaConflict
from plugins.spark.value_schemas import closed, extend_topics, merge_topics, opened


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def test_every_topics_fields_become_columns() -> None:
    merged = merge_topics({"big": struct(x=LongType()), "small": struct(y=StringType())})
    assert merged.schema == struct(x=LongType(), y=StringType())
    assert merged.notes == ()


def test_numbers_widen_and_structs_grow() -> None:
    one = struct(n=LongType(), s=struct(a=LongType()), l=ArrayType(LongType()))
    other = struct(n=DoubleType(), s=struct(b=StringType()), l=ArrayType(DoubleType()))
    merged = merge_topics({"one": one, "other": other})
    assert merged.schema == struct(
        n=DoubleType(), s=struct(a=LongType(), b=StringType()), l=ArrayType(DoubleType())
    )
    assert merged.notes == ()


def test_types_in_conflict_become_text_and_are_told() -> None:
    merged = merge_topics({"one": struct(s=struct(x=LongType())), "other": struct(s=struct(x=StringType()))})
    assert merged.schema == struct(s=struct(x=StringType()))
    assert merged.notes == ("s.x is string in other and bigint in another topic: the column is STRING",)


def test_a_field_that_was_null_in_all_values_takes_the_other_topics_type() -> None:
    inferred, typed = struct(x=StringType(), l=ArrayType(StringType())), struct()
    unknown = opened(inferred, typed)
    assert unknown == struct(x=NullType(), l=ArrayType(NullType()))
    assert isinstance(unknown, StructType)
    assert merge_topics({"a": unknown, "b": struct(x=LongType())}).schema["x"].dataType == LongType()
    assert closed(unknown) == inferred


def test_a_table_with_rows_keeps_its_types() -> None:
    table = struct(n=DoubleType(), text=StringType())
    extended = extend_topics(table, {"t": struct(n=LongType(), text=LongType(), new=LongType())})
    assert extended.schema == struct(n=DoubleType(), text=StringType(), new=LongType())
    with pytest.raises(SchemaConflict, match="n of topic t is string, and the table's column is double"):
        extend_topics(table, {"t": struct(n=StringType())})
    lenient = extend_topics(table, {"t": struct(n=StringType(), m=LongType())}, lenient=frozenset("t"))
    assert lenient.schema == struct(n=DoubleType(), text=StringType(), m=LongType())
    assert len(lenient.notes) == 1


def test_names_that_differ_by_case_only_are_one_column_and_told() -> None:
    merged = merge_topics({"a": struct(id=LongType()), "b": struct(Id=LongType())})
    assert merged.schema == struct(id=LongType())
    assert "Id of b has no column" in merged.notes[0]
    assert merge_topics({"a": struct(id=LongType()), "b": struct(Id=LongType())}, str).notes == ()
