"""Casts of single values, by the rules of Java's casts and parsers."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

from connect.api.schema import DATE, TIME, TIMESTAMP, Schema, Type
from connect.errors import DataError
from connect.transforms.java_numbers import (
    as_float32,
    float_text,
    float_to_int,
    parse_float,
    parse_int,
    wrapped,
)
from connect.transforms.times import date_text, to_millis

Cast = Callable[[Any], Any]

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
TARGETS = {
    **{kind.name: kind for kind in (*BITS, Type.FLOAT32, Type.FLOAT64)},
    "BOOLEAN": Type.BOOLEAN,
    "STRING": Type.STRING,
}
_PLAIN = (bool, int, float, str, bytes, bytearray, memoryview)
_UNCASTABLE = (Type.ARRAY, Type.MAP, Type.STRUCT)
_MILLIS_PER_DAY = 86_400_000


def caster(target: Type, schema: Schema | None) -> Cast:
    """Return a function that casts values of a schema (None: without schema) to a type.

    It returns None for null, and raises DataError for a value that has no such form.
    """
    convert = _converter(target, schema)
    logical = _number_of(schema) if target is not Type.STRING else None
    if logical is not None:
        convert = _after(logical, convert)

    def cast(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except ValueError as e:
            raise DataError(f"cast to {target.value}: {e}") from e

    if schema is not None:
        return cast

    def cast_plain(value: Any) -> Any:
        if value is not None and not isinstance(value, _PLAIN):
            raise DataError(f"{type(value).__name__} without schema cannot be cast")
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise DataError(f"{value} cannot be cast: it has more than 64 bits")
        return cast(value)

    return cast_plain


def _after(first: Cast, second: Cast) -> Cast:
    return lambda value: second(first(value))


def _number_of(schema: Schema | None) -> Cast | None:
    """Return a function from values of a logical type to the number that is stored for them."""
    name = schema.name if schema is not None else None
    if name == DATE:
        return lambda value: to_millis(value) // _MILLIS_PER_DAY
    return to_millis if name in (TIME, TIMESTAMP) else None


def _converter(target: Type, schema: Schema | None) -> Cast:
    if schema is not None and schema.type in _UNCASTABLE:
        return _uncastable
    if target is Type.STRING:
        return lambda value: _text(value, 32 if schema is not None and schema.type is Type.FLOAT32 else 64)
    if target is Type.BOOLEAN:
        return _boolean
    if target is Type.FLOAT64 and schema is not None and schema.type is Type.STRING:
        return parse_float
    if target is Type.FLOAT32:
        return lambda value: as_float32(_float(value))
    return _float if target is Type.FLOAT64 else _to_int(BITS[target])


def _to_int(bits: int) -> Cast:
    def integer(value: Any) -> int:
        if isinstance(value, int):
            return wrapped(value, bits)
        if isinstance(value, str):
            return parse_int(value, bits)
        if isinstance(value, float):
            return float_to_int(value, bits)
        if isinstance(value, decimal.Decimal):
            return wrapped(int(value), bits)
        raise ValueError(f"{type(value).__name__} has no such form")

    return integer


def _float(value: Any) -> float:
    if isinstance(value, str):
        return parse_float(value)
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    raise ValueError(f"{type(value).__name__} has no such form")


def _uncastable(value: Any) -> Any:
    raise ValueError("a struct, map or array cannot be cast")


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    if isinstance(value, float):
        return float_to_int(value, 64) != 0
    if isinstance(value, (int, decimal.Decimal)):
        return wrapped(int(value), 64) != 0
    raise ValueError(f"{type(value).__name__} has no such form")


def _text(value: Any, bits: int) -> str:
    kind = type(value)
    if kind is int or kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return float_text(value, bits)
    if isinstance(value, (dt.date, dt.time)):
        return date_text(to_millis(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return str(value)
