"""Values of Connect's logical types and the fields of their Protobuf messages."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema
from connect.errors import DataError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS = dt.timedelta(milliseconds=1)
_SCALE_MAX = 10_000
_UNSCALED_MAX = 16_384
"""The most bytes of a decimal's unscaled number."""


def to_fields(schema: Schema) -> Callable[[Any], dict[str, Any]]:
    """Return the conversion of a logical type's values to the fields of its message."""
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get("scale", 0))
        return lambda value: _decimal_fields(value, scale)
    conversions: dict[str, Callable[[Any], dict[str, Any]]] = {
        DATE: _date_fields,
        TIME: _time_fields,
        TIMESTAMP: _timestamp_fields,
    }
    return conversions[schema.name or ""]


def from_message(name: str) -> Callable[[Any], Any]:
    """Return the conversion of messages to values of the logical type `name`."""
    return {DECIMAL: _decimal, DATE: _date, TIME: _time, TIMESTAMP: _timestamp}[name]


def _decimal_fields(value: decimal.Decimal, scale: int) -> dict[str, Any]:
    """Return unscaled number, precision and scale. Raises DataError if the scale has too few digits."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{value} has no place in a decimal")
    missing = scale + exponent
    if abs(missing) > _SCALE_MAX:
        raise DataError(f"{value} is out of range for a decimal of scale {scale}")
    unscaled = int(decimal.Decimal((sign, digits, 0)))
    if missing >= 0:
        unscaled *= 10**missing
    else:
        unscaled, rest = divmod(abs(unscaled), 10**-missing)
        if rest:
            raise DataError(f"{value} has more than {scale} digits after the point")
        unscaled = -unscaled if sign else unscaled
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    precision = len(decimal.Decimal(unscaled).as_tuple().digits)
    return {"value": unscaled.to_bytes(size, "big", signed=True), "precision": precision, "scale": scale}


def _decimal(message: Any) -> decimal.Decimal:
    if len(message.value) > _UNSCALED_MAX or abs(message.scale) > _SCALE_MAX:
        raise DataError(f"a decimal of {len(message.value)} bytes and scale {message.scale} is too large")
    unscaled = decimal.Decimal(int.from_bytes(message.value, "big", signed=True)).as_tuple()
    return decimal.Decimal((unscaled.sign, unscaled.digits, -message.scale))


def _date_fields(value: dt.date) -> dict[str, Any]:
    return {"year": value.year, "month": value.month, "day": value.day}


def _date(message: Any) -> dt.date:
    return dt.date(message.year, message.month, message.day)


def _time_fields(value: dt.time) -> dict[str, Any]:
    nanos = value.microsecond // 1000 * 1_000_000
    return {"hours": value.hour, "minutes": value.minute, "seconds": value.second, "nanos": nanos}


def _time(message: Any) -> dt.time:
    return dt.time(message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000)


def _timestamp_fields(value: dt.datetime) -> dict[str, Any]:
    ms = (value - _EPOCH) // _MS
    return {"seconds": ms // 1000, "nanos": ms % 1000 * 1_000_000}


def _timestamp(message: Any) -> dt.datetime:
    return _EPOCH + dt.timedelta(seconds=message.seconds, milliseconds=message.nanos // 1_000_000)
