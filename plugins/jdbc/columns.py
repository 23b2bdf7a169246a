"""Columns of a source: the Connect schema of each, and the conversion of its values.

- SMALLINT, INTEGER and BIGINT are int16, int32 and int64; unsigned ones the next larger, TINYINT int8.
- REAL and DOUBLE PRECISION are float and double. BOOLEAN is boolean. BYTEA and BLOB are bytes.
- NUMERIC(p, s) is a Decimal of scale s, unless numeric.mapping says otherwise.
- DATE, TIME and TIMESTAMP are Connect's, with its milliseconds. Arrays are arrays.
- Text, and any other type, is a string as the database writes it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from connect.api import DataError, Schema, Type, schema
from plugins.jdbc.source_config import NumericMapping

Convert = Callable[[Any], Any]
INTEGER_DIGITS_MAX = 18
"""Digits that every 64-bit integer has room for."""
_SCALE_UNKNOWN = 127
"""The scale of a NUMERIC column without one, as Confluent's connector has it."""
_SCALE_LOW = -84
_SINGLE = struct.Struct("<f")
_EXACT = decimal.Context(prec=2000)
CONVERSION_ERRORS = (TypeError, ValueError, ArithmeticError, AttributeError, DataError)
"""Errors of conversions: the value is at fault."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to select: its SQL expression, Connect schema, and conversion where values need one."""

    name: str
    expression: sa.ColumnElement[Any]
    schema: Schema | None
    """None where only the values tell (SQLite's results of queries)."""
    convert: Convert | None


def column(
    element: sa.ColumnElement[Any], name: str, *, optional: bool, mapping: NumericMapping, zone: ZoneInfo
) -> Column:
    """Return the column for an SQL column with a type; types that have no schema are cast to text in SQL."""
    if isinstance(element.type, sa.types.NullType):
        return Column(name, element, None, None)
    shape = _shape(element.type, mapping, zone)
    if shape is None:
        return Column(name, sa.cast(element, sa.Text).label(name), schema.string(optional=optional), None)
    field, convert = shape
    expression = element
    if isinstance(element.type, mysql.FLOAT):  # MariaDB sends six digits of a FLOAT, but all of a DOUBLE
        expression = (element + sa.literal_column("0e0")).label(name)
    if optional:
        field = field.as_optional()
        convert = _null_or(convert)
    return Column(name, expression, field, convert)


def _null_or(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _shape(
    kind: sa.types.TypeEngine[Any], mapping: NumericMapping, zone: ZoneInfo
) -> tuple[Schema, Convert | None] | None:
    if isinstance(kind, postgresql.DOMAIN):
        kind = kind.data_type
    if isinstance(kind, sa.ARRAY):
        return _array(kind, mapping, zone)
    if isinstance(kind, mysql.BIT):
        return (schema.int8() if (kind.length or 1) == 1 else schema.int64()), _bits
    if isinstance(kind, (sa.Integer, mysql.YEAR)):
        return _integer(kind), None
    if isinstance(kind, sa.Boolean):
        return schema.boolean(), _truth
    if isinstance(kind, mysql.FLOAT):
        return schema.float32(), _short_single
    if isinstance(kind, sa.Float):
        is_single = isinstance(kind, sa.REAL) and not isinstance(kind, sa.DOUBLE)
        return (schema.float32() if is_single else schema.float64()), float
    if isinstance(kind, sa.Numeric):
        return _numeric(kind, mapping)
    if isinstance(kind, sa.DateTime):
        return schema.timestamp(), utc_conversion(zone_of(kind, zone))
    if isinstance(kind, sa.Date):
        return schema.date(), lambda value: value if type(value) is dt.date else dt.date.fromisoformat(value)
    if isinstance(kind, sa.Time):
        return schema.time(), _time
    if isinstance(kind, (sa.LargeBinary, sa.types._Binary)):
        return schema.bytes_(), bytes
    if isinstance(kind, sa.String) and not isinstance(kind, mysql.SET):
        return schema.string(), None
    return None


def _array(
    kind: sa.ARRAY[Any], mapping: NumericMapping, zone: ZoneInfo
) -> tuple[Schema, Convert | None] | None:
    shape = _shape(kind.item_type, mapping, zone)
    if shape is None or kind.dimensions not in (None, 1):
        return None
    item, convert = shape
    convert = _null_or(convert)
    return schema.array(item.as_optional()), None if convert is None else lambda v: [convert(i) for i in v]


def _short_single(value: float) -> float:
    """Return the number of the fewest digits, six at least, that is the same number of 32 bits.

    PostgreSQL's text of a REAL is that number, too: 0.1, not 0.10000000149011612.
    """
    exact = _SINGLE.pack(value)
    numbers = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next(number for number in numbers if _SINGLE.pack(number) == exact)


def _bits(value: Any) -> int:
    return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)


def _truth(value: Any) -> bool:
    if value not in (0, 1):  # as True and False are
        raise ValueError("it is no boolean")
    return bool(value)


def _time(value: Any) -> dt.time:
    """Return the time of a day. MariaDB's TIME is a timedelta, which may be below 0 or above a day."""
    if isinstance(value, str):
        value = dt.time.fromisoformat(value)
    if not isinstance(value, dt.timedelta):
        return value.replace(tzinfo=None)  # type: ignore[no-any-return]
    if value.days:
        raise ValueError(f"{value} is no time of a day")
    return (dt.datetime.min + value).time()


def _integer(kind: sa.types.TypeEngine[Any]) -> Schema:
    sizes = [schema.int8, schema.int16, schema.int32, schema.int64, schema.int64]
    if isinstance(kind, mysql.TINYINT):
        size = 0
    elif isinstance(kind, sa.SmallInteger):
        size = 1
    elif isinstance(kind, sa.BigInteger):
        size = 3
    else:
        size = 2
    return sizes[size + bool(getattr(kind, "unsigned", False))]()


def _numeric(kind: sa.Numeric[Any], mapping: NumericMapping) -> tuple[Schema, Convert | None]:
    digits, scale = kind.precision, kind.scale
    if digits is None and scale is None:
        digits, scale = 0, _SCALE_UNKNOWN
    digits, scale = digits or 0, scale or 0
    is_whole = _SCALE_LOW <= scale < 1 and (mapping != "precision_only" or scale == 0)
    if mapping != "none" and is_whole and 0 < digits <= INTEGER_DIGITS_MAX:
        size = (digits > 2) + (digits > 4) + (digits > 9)
        return (schema.int8, schema.int16, schema.int32, schema.int64)[size](), int
    fits = mapping == "best_fit_eager_double" or (mapping == "best_fit" and 0 < digits <= INTEGER_DIGITS_MAX)
    if fits and scale > 0:
        return schema.float64(), float
    unit = decimal.Decimal(1).scaleb(-scale)

    def exact(value: Any) -> decimal.Decimal:
        number = decimal.Decimal(repr(value) if isinstance(value, float) else value)  # SQLite's are floats
        if not number.is_finite():
            raise DataError(f"{number} is no number that Connect's Decimal can hold")
        return _EXACT.quantize(number, unit)

    return schema.decimal_(scale), exact


def zone_of(kind: sa.types.TypeEngine[Any], zone: ZoneInfo) -> ZoneInfo:
    """Return the zone of a column's values that have none; MariaDB's TIMESTAMP is in the session's, UTC."""
    return ZoneInfo("UTC") if isinstance(kind, mysql.TIMESTAMP) else zone


def utc_conversion(zone: ZoneInfo) -> Convert:
    """Return the conversion of a datetime, in `zone` if it has none of its own, to UTC."""

    def to_utc(value: dt.datetime | str) -> dt.datetime:
        if isinstance(value, str):  # SQLite's are, and what no datetime can hold
            value = dt.datetime.fromisoformat(value)
        aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return aware.astimezone(dt.UTC)

    return to_utc


def schema_of_value(value: Any) -> Schema:
    """Return the schema of a value of SQLite, which knows no type of a query's columns."""
    makers: dict[type, Callable[..., Schema]] = {
        int: schema.int64,
        float: schema.float64,
        bytes: schema.bytes_,
        bool: schema.boolean,
    }
    return makers.get(type(value), schema.string)(optional=True)


def is_whole_number(field: Schema) -> bool:
    """Return True if an incrementing column may have this schema."""
    return field.type in (Type.INT8, Type.INT16, Type.INT32, Type.INT64) or field.name == schema.DECIMAL
