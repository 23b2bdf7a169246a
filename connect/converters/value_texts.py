"""Texts of values, as Kafka's `Values.convertToString` writes them: for headers, and for people.

[1,2]    {"a":1.5}    2019-01-01T10:11:12.345Z    bytes as base64    strings bare, quoted within others
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import struct
from collections.abc import Mapping
from typing import Any

from connect.api.schema import Schema, Type
from connect.errors import DataError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_DAY = _EPOCH + dt.timedelta(days=1)
_FLOAT32 = struct.Struct(">f")


def text_of(schema: Schema | None, value: Any, *, embedded: bool = False) -> str:
    """Return the text of a value. Raises DataError for a value of no type of Connect.

    `embedded`: the value is within a list or a map, where strings have quotes.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value) if embedded else value
        case int() | decimal.Decimal():
            return str(value)
        case float():
            return float_text(value, single=schema is not None and schema.type is Type.FLOAT32)
        case bytes() | bytearray() | memoryview():
            encoded = base64.b64encode(value).decode()
            return f'"{encoded}"' if embedded else encoded
        case list() | tuple():
            of = schema.values if schema is not None else None
            return f"[{','.join(text_of(of, item, embedded=True) for item in value)}]"
        case dict():
            return _map_text(schema, value)
        case dt.datetime() | dt.date() | dt.time():
            return _time_text(value)
    raise DataError(f"{type(value).__name__} is no type of Connect, so it has no text")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _map_text(schema: Schema | None, value: Mapping[Any, Any]) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        entries = [
            f"{_quoted(name)}:{text_of(of, value.get(name), embedded=True)}"
            for name, of in schema.fields.items()
        ]
    else:
        keys, values = (None, None) if schema is None else (schema.keys, schema.values)
        entries = [
            f"{text_of(keys, key, embedded=True)}:{text_of(values, item, embedded=True)}"
            for key, item in value.items()
        ]
    return f"{{{','.join(entries)}}}"


def _time_text(value: dt.datetime | dt.date | dt.time) -> str:
    """Return ISO 8601 in UTC, to the millisecond.

    As in Kafka, a midnight is written as a day. Kafka writes only the time of what is before 1970-01-02;
    here nothing is left out.
    """
    if isinstance(value, dt.time):
        return f"{value.isoformat('milliseconds')[:12]}Z"
    if not isinstance(value, dt.datetime):
        return value.isoformat()
    instant = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if instant >= _FIRST_DAY and instant.time() == dt.time():
        return instant.date().isoformat()
    return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def single(value: float) -> float:
    """Return the nearest number of 32 bits; infinity if it is too large for any."""
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def shortest_single(value: float) -> float:
    """Return the number with the fewest digits among those whose nearest number of 32 bits is `value`."""
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        if single(short) == value:
            return short
    return value


def float_text(value: float, *, single: bool) -> str:
    """Return a float as Java's `Float.toString` (if `single`) or `Double.toString` writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    number = decimal.Decimal(repr(_shortest(value) if single else value))
    sign, digits, _ = number.as_tuple()
    minus, point = "-" if sign else "", number.adjusted()
    if not number:
        return f"{minus}0.0"
    text = "".join(map(str, digits)).rstrip("0")
    if -3 <= point < 7:
        if point < 0:
            return f"{minus}0.{'0' * (-point - 1)}{text}"
        text = text.ljust(point + 1, "0")
        return f"{minus}{text[: point + 1]}.{text[point + 1 :] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point}"


def _shortest(value: float) -> float:
    rounded = single(value)
    return value if math.isinf(rounded) else shortest_single(rounded)
