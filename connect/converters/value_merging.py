"""The common schema of the items of an array or map whose types were inferred, and items brought to it."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable
from typing import Any

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.converters.value_texts import shortest_single, single
from connect.errors import DataError

_WIDTHS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ONE = _EPOCH.date().toordinal()


def merged(schemas: Iterable[Schema | None]) -> Schema | None:
    """Return the schema that all items fit, the widest number's; None if there is none."""
    common: Schema | None = None
    for schema in schemas:
        if schema is None:
            continue
        if common is None:
            common = schema
        elif common.type is not schema.type:
            if common.type not in _WIDTHS or schema.type not in _WIDTHS:
                return None
            common = max(common, schema, key=lambda each: _WIDTHS.index(each.type))
        elif {common.name, schema.name} == {DATE, TIME}:
            return None  # Kafka would read the days as times
        else:
            common = schema
    return common


def aligned(schema: Schema, value: Any) -> Any:
    """Return an item as its common schema has it. Raises DataError for null, and for times among floats."""
    if value is None:
        raise DataError("a null among values of a type")
    match schema.name or schema.type:
        case Type.FLOAT32 | Type.FLOAT64:
            return _as_float(schema.type, value)
        case s if s == DATE and isinstance(value, int):
            return dt.date.fromordinal(_DAY_ONE + value)
        case s if s == TIME and isinstance(value, int):
            return (_EPOCH + dt.timedelta(milliseconds=value)).time()
        case s if s == TIMESTAMP and not isinstance(value, dt.datetime):
            return _as_timestamp(value)
    if isinstance(value, dt.date | dt.time) and schema.type in _WIDTHS and schema.name is None:
        raise DataError("a date or time among numbers")
    if schema.name == DECIMAL and not isinstance(value, decimal.Decimal):
        raise DataError("no decimal among decimals")
    return value


def _as_float(kind: Type, value: Any) -> float:
    if not isinstance(value, float | int):
        raise DataError("a date or time among numbers")
    if kind is Type.FLOAT32:
        return shortest_single(single(value))
    return (
        single(value)
        if isinstance(value, float) and shortest_single(single(value)) == value
        else float(value)
    )


def _as_timestamp(value: Any) -> dt.datetime:
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time(), dt.UTC)
    if isinstance(value, dt.time):
        return dt.datetime.combine(_EPOCH.date(), value, dt.UTC)
    return _EPOCH + dt.timedelta(milliseconds=value)
