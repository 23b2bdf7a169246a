"""Conversion of values with a schema to JSON values and back, composed once per schema.

`to_json(schema)` and `from_json(schema)` return a function, or None where the value is the same both ways,
so that a struct of plain fields costs nothing.

    BYTES base64 text          DATE days, TIME ms of the day, TIMESTAMP ms: numbers
    DECIMAL base64 of the unscaled two's complement big-endian number, or (NUMERIC) a number
    MAP an object if its keys are strings, else an array of [key, value]
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any, Literal

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.errors import DataError

DecimalFormat = Literal["BASE64", "NUMERIC"]
Convert = Callable[[Any], Any]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ONE = _EPOCH.date().toordinal()
_MS = dt.timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_EXACT = decimal.Context(prec=100_000)


def to_json(schema: Schema, decimals: DecimalFormat, *, fill: bool) -> Convert | None:
    """Return the conversion from Connect values to JSON values.

    With `fill`, nulls take the schema's default.
    """
    return _nullable(schema, _to_json(schema, decimals, fill), fill)


def from_json(schema: Schema, *, fill: bool) -> Convert | None:
    """Return the conversion from JSON values to Connect values. Decimals may have either format."""
    return _nullable(schema, _from_json(schema, fill), fill, check=True)


def _nullable(schema: Schema, convert: Convert | None, fill: bool, *, check: bool = False) -> Convert | None:
    default, optional = schema.default, schema.optional
    if convert is None and (default is None or not fill) and (optional or not check):
        return None

    def nullable(value: Any) -> Any:
        if value is None:
            if default is None or not fill:
                if not optional and check:
                    raise DataError(f"null where {schema.name or schema.type.value} is required")
                return None
            if check:  # reading: a default is a Connect value already
                return default
            value = default
        return value if convert is None else convert(value)

    return nullable


def _to_json(schema: Schema, decimals: DecimalFormat, fill: bool) -> Convert | None:
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get("scale", 0))
        return (lambda v: v) if decimals == "NUMERIC" else lambda v: _unscaled(v, scale)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name][0]
    match schema.type:
        case Type.BYTES:
            return lambda v: base64.b64encode(v).decode()
        case Type.FLOAT32 | Type.FLOAT64:
            return _finite_or_text
        case Type.ARRAY if schema.values:
            return _each_item(to_json(schema.values, decimals, fill=fill))
        case Type.MAP if schema.keys and schema.values:
            key, item = (to_json(s, decimals, fill=fill) or _same for s in (schema.keys, schema.values))
            if schema.keys.type is Type.STRING:
                return lambda v: {k: item(i) for k, i in v.items()}
            return lambda v: [[key(k), item(i)] for k, i in v.items()]
        case Type.STRUCT:
            return _each_field({n: to_json(s, decimals, fill=fill) for n, s in schema.fields.items()})
    return None


def _from_json(schema: Schema, fill: bool) -> Convert | None:
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get("scale", 0))
        return lambda v: _scaled(v, scale)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name][1]
    match schema.type:
        case Type.BYTES:
            return lambda v: base64.b64decode(v, validate=True)
        case Type.ARRAY if schema.values:
            return _each_item(from_json(schema.values, fill=fill))
        case Type.MAP if schema.keys and schema.values:
            key, item = (from_json(s, fill=fill) or _same for s in (schema.keys, schema.values))
            if schema.keys.type is Type.STRING:
                return lambda v: {key(k): item(i) for k, i in v.items()}
            return lambda v: {key(k): item(i) for k, i in v}
        case Type.STRUCT:
            return _each_field({n: from_json(s, fill=fill) for n, s in schema.fields.items()})
        case Type.FLOAT32 | Type.FLOAT64:
            return float
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            return _whole
    return None


def _same(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    """Return 1.0 and 1e3 as whole numbers; any other value as it is."""
    is_whole = isinstance(value, float | decimal.Decimal) and value == value // 1
    return int(value) if is_whole else value


def _finite_or_text(value: float) -> float | str:
    """Return NaN and infinities as Kafka writes them: `"NaN"`. JSON has no numbers for them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _each_item(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda v: [convert(item) for item in v]


def _each_field(converts: dict[str, Convert | None]) -> Convert:
    fields = [(name, convert or _same) for name, convert in converts.items()]
    return lambda v: {name: convert(v.get(name)) for name, convert in fields}


def has_decimals(schema: Schema) -> bool:
    """Return True if any part of the schema is a decimal: its JSON numbers must not become floats."""
    parts = [*schema.fields.values(), schema.keys, schema.values]
    return schema.name == DECIMAL or any(has_decimals(part) for part in parts if part is not None)


def _unscaled(value: decimal.Decimal, scale: int) -> str:
    unscaled = int(_EXACT.scaleb(value, scale))
    if _EXACT.scaleb(decimal.Decimal(unscaled), -scale) != value:
        raise DataError(f"{value} has more than {scale} digits after the point")
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def _scaled(value: str | int | decimal.Decimal, scale: int) -> decimal.Decimal:
    if isinstance(value, str):
        unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        return _EXACT.scaleb(decimal.Decimal(unscaled), -scale)
    return decimal.Decimal(value)  # with its own scale, as in Kafka: no digit is lost


def _time_to_ms(value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _ms_to_time(value: int) -> dt.time:
    if not 0 <= value < _DAY_MS:
        raise DataError(f"{value} is no time: ms of a day are 0 to {_DAY_MS - 1}")
    return (_EPOCH + value * _MS).time()


_LOGICAL: dict[str, tuple[Convert, Convert]] = {
    DATE: (
        lambda v: v.toordinal() - _DAY_ONE,
        lambda v: dt.date.fromordinal(v + _DAY_ONE),
    ),
    TIME: (_time_to_ms, _ms_to_time),
    TIMESTAMP: (lambda v: (v - _EPOCH) // _MS, lambda v: _EPOCH + v * _MS),
}
