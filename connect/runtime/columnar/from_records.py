"""Arrow columns of converted records, for converters without columns of their own, and after transforms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from connect.api.columnar_sink import ColumnBatch
from connect.api.records import Header, SinkRecord
from connect.api.schema import Schema, Type
from connect.errors import DataError
from connect.runtime.columnar.arrow_types import arrow_type
from kafka_client import TopicPartition

_MILLISECONDS = pa.timestamp("ms", tz="UTC")


def column_batches(records: Sequence[SinkRecord]) -> list[ColumnBatch]:
    """Return records as columns, in order: a batch for each run of one topic and source partition.

    Raises DataError for values that do not fit a column together.
    """
    runs = itertools.groupby(records, lambda r: (r.topic, r.original_topic, r.original_partition))
    return [_batch(topic, TopicPartition(*source), list(run)) for (topic, *source), run in runs]


def headers_column(headers: Sequence[Sequence[Header]]) -> pa.Array | None:
    """Return converted headers as a list of structs per record, or None if there are none."""
    if not any(headers):
        return None
    return pa.array([[{"name": name, "value": value} for name, _, value in each] for each in headers])


def _batch(topic: str, source: TopicPartition, records: list[SinkRecord]) -> ColumnBatch:
    raws = {r.offset: r.origin.raw for r in records if r.origin is not None and r.origin.raw is not None}
    try:
        return ColumnBatch(
            topic=topic,
            source=source,
            offsets=pa.array([r.offset for r in records], pa.int64()),
            timestamps=pa.array([r.timestamp for r in records], _MILLISECONDS),
            keys=_column([r.key_schema for r in records], [r.key for r in records]),
            values=_column([r.value_schema for r in records], [r.value for r in records]),
            headers=headers_column([r.headers for r in records]),
            raw_record=raws.get if raws else None,
        )
    except (pa.ArrowException, AttributeError, TypeError, OverflowError, ValueError) as e:
        first, last = records[0].offset, records[-1].offset
        raise DataError(f"{source}, offsets {first} to {last}: values do not fit columns: {e}") from e


def _column(schemas: Sequence[Schema | None], values: Sequence[Any]) -> pa.Array:
    present = {id(s): s for s, v in zip(schemas, values, strict=True) if v is not None}
    declared = [schema for schema in present.values() if schema is not None]
    if declared and len(declared) == len(present):
        if len(declared) == 1:
            return pa.array(values, arrow_type(declared[0]))
        if all(schema.type is Type.STRUCT for schema in declared):
            merged = pa.unify_schemas(
                [pa.schema(list(arrow_type(schema))) for schema in declared], promote_options="permissive"
            )
            return pa.array(values, pa.struct([field.with_nullable(True) for field in merged]))
    if any(isinstance(value, dict) for value in values):
        return _structs(values)
    return pa.array(values)


def _structs(values: Sequence[Any]) -> pa.Array:
    odd = next((v for v in values if not (v is None or isinstance(v, dict))), None)
    if odd is not None:
        raise TypeError(f"some values are objects, one is {type(odd).__name__}")
    rows = [value or {} for value in values]
    names = dict.fromkeys(name for row in rows for name in row)
    if not names:
        return pa.array(values, pa.struct([]))
    columns = [pa.array([row.get(name) for row in rows]) for name in names]
    mask = pa.array([value is None for value in values])
    return pa.StructArray.from_arrays(columns, names=list(names), mask=mask)
