"""Merges the schemas of several topics' JSON values into the columns of one table.

Values of two topics may have a field of the same name. Types are merged as Spark merges them within a topic:
a BIGINT and a DOUBLE become a DOUBLE, structs get the fields of both, and anything else becomes a STRING,
which keeps the JSON text. A table that has rows keeps its types, since Spark could not read the old rows by
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from plugins.spark.errors import SchemaConflict

Fold = Callable[[str], str]
"""Returns the form of a name by which Spark compares names: lower case, unless spark.sql.caseSensitive."""


class MergedSchema(NamedTuple):
    """Columns for the values of several topics, and `notes`: sentences about fields that differ."""

    schema: StructType
    notes: tuple[str, ...]


def merge_topics(schemas: Mapping[str, StructType], fold: Fold = str.lower) -> MergedSchema:
    """Return columns that hold the values of all topics, in the order in which the topics name them."""
    merged, notes = StructType([]), list[str]()
    for topic, schema in schemas.items():
        merged = _each_field("", merged, schema, _Merge(topic, notes, fold, _merged))
    return MergedSchema(merged, tuple(notes))


def extend_topics(
    columns: StructType,
    schemas: Mapping[str, StructType],
    fold: Fold = str.lower,
    lenient: frozenset[str] = frozenset(),
) -> MergedSchema:
    """Return a table's columns with the fields of further topics added.

    Raises SchemaConflict if values of a field do not fit the table's column. For `lenient` topics the column
    stays, and a note says so.
    """
    notes: list[str] = []
    for topic, schema in schemas.items():
        combine = _extended_or_noted if topic in lenient else _extended
        columns = _each_field("", columns, schema, _Merge(topic, notes, fold, combine))
    return MergedSchema(columns, tuple(notes))


def as_struct(kind: DataType) -> StructType:
    """Return `kind`, which must be a struct."""
    assert isinstance(kind, StructType), kind
    return kind


def opened(inferred: DataType, typed: DataType | None) -> DataType:
    """Return the inferred type with NullType where all values were null, so that any other type fits there.

    `typed` is what Spark infers without such fields (`dropFieldIfAllNull`); None for one of these fields.
    """
    if isinstance(inferred, StructType):
        kinds = {field.name: field.dataType for field in typed} if isinstance(typed, StructType) else {}
        return StructType(
            [StructField(f.name, opened(f.dataType, kinds.get(f.name))) for f in inferred.fields]
        )
    if isinstance(inferred, ArrayType):
        element = typed.elementType if isinstance(typed, ArrayType) else None
        return ArrayType(opened(inferred.elementType, element))
    return NullType() if typed is None and isinstance(inferred, StringType) else inferred


def closed(kind: DataType) -> DataType:
    """Return the type with STRING for every NullType, as Spark's inference does."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, closed(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(closed(kind.elementType))
    return StringType() if isinstance(kind, NullType) else kind


class _Merge(NamedTuple):
    """The merge of one topic's fields into the columns; `combine` merges two types of one field."""

    topic: str
    notes: list[str]
    fold: Fold
    combine: Callable[[str, DataType, DataType, _Merge], DataType]


def _each_field(path: str, old: StructType, new: StructType, merge: _Merge) -> StructType:
    fields = {merge.fold(field.name): field for field in old}
    for field in new:
        name = merge.fold(field.name)
        before = fields.get(name)
        if before is None:
            fields[name] = field
        elif before.name != field.name:
            merge.notes.append(
                f"{path}{field.name} of {merge.topic} has no column, since the table has "
                f"{path}{before.name}: spark.sql.caseSensitive=true tells them apart"
            )
        else:
            kind = merge.combine(path + field.name, before.dataType, field.dataType, merge)
            fields[name] = StructField(field.name, kind)
    return StructType(list(fields.values()))


def _nested(path: str, old: DataType, new: DataType, merge: _Merge) -> DataType | None:
    """Return the merged type of two structs or two arrays, else None."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        return _each_field(f"{path}.", old, new, merge)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(merge.combine(f"{path}[]", old.elementType, new.elementType, merge))
    return None


def _merged(path: str, old: DataType, new: DataType, merge: _Merge) -> DataType:
    if old == new or isinstance(new, NullType) or _holds_number(old, new):
        return old
    if isinstance(old, NullType) or _holds_number(new, old):
        return new
    if (nested := _nested(path, old, new, merge)) is not None:
        return nested
    merge.notes.append(
        f"{path} is {new.simpleString()} in {merge.topic} and {old.simpleString()} in another topic: "
        "the column is STRING"
    )
    return StringType()


def _extended(path: str, old: DataType, new: DataType, merge: _Merge) -> DataType:
    if old == new or isinstance(old, StringType) or isinstance(new, NullType) or _holds_number(old, new):
        return old
    if (nested := _nested(path, old, new, merge)) is not None:
        return nested
    raise SchemaConflict(
        f"{path} of topic {merge.topic} is {new.simpleString()}, and the table's column is "
        f"{old.simpleString()}: declare the columns in value.schema, or write the topic to a table of its own"
    )


def _extended_or_noted(path: str, old: DataType, new: DataType, merge: _Merge) -> DataType:
    try:
        return _extended(path, old, new, merge)
    except SchemaConflict as conflict:
        merge.notes.append(f"{conflict}; until then it is null where it does not fit")
        return old


def _holds_number(wide: DataType, narrow: DataType) -> bool:
    """Return True if a column of type `wide` holds every number of type `narrow`, as in Spark's inference."""
    if isinstance(wide, DoubleType):
        return isinstance(narrow, LongType | DecimalType)
    return isinstance(wide, DecimalType) and wide.scale == 0 and isinstance(narrow, LongType)
