"""TimestampConverter: converts between strings, Unix time and Connect's Date, Time and Timestamp."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from connect.api import schema as s
from connect.api.schema import DATE, TIME, TIMESTAMP, Schema, Type
from connect.config import setting
from connect.errors import ConfigError, DataError
from connect.transforms.date_format import DateFormat
from connect.transforms.fields import FillConfig, as_map, struct_copy
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan
from connect.transforms.times import MILLIS_PER_DAY, to_datetime, to_millis

_PURPOSE = "converting timestamps"
_SCHEMAS: dict[str, Callable[..., Schema]] = {
    "string": s.string,
    "unix": s.int64,
    "Date": s.date,
    "Time": s.time,
    "Timestamp": s.timestamp,
}
_KINDS = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}
_NANOS_PER_UNIT = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 1000, "nanoseconds": 1}
_LONG = (-(1 << 63), (1 << 63) - 1)


class TimestampConverterConfig(FillConfig):
    """Converts a field, or the whole key or value, to another form of a timestamp."""

    field: str = setting("The field; the whole key or value if empty.", default="", importance="HIGH")
    target_type: Literal["string", "unix", "Date", "Time", "Timestamp"] = setting(
        "The form to convert to.", importance="HIGH"
    )
    format: str = setting(
        "The pattern of strings, of Java's SimpleDateFormat; required to convert to or from them.", default=""
    )
    unix_precision: Literal["nanoseconds", "microseconds", "milliseconds", "seconds"] = setting(
        "The unit of Unix time.", default="milliseconds", importance="LOW"
    )

    def check(self) -> None:
        """Raise ConfigError if the pattern is not supported, or is missing."""
        if self.target_type == "string" and not self.format.strip():
            raise ConfigError("format", self.format, "is required with target.type=string")
        try:
            DateFormat(self.format)
        except ValueError as e:
            raise ConfigError("format", self.format, str(e)) from e


class TimestampConverter(PartTransform[TimestampConverterConfig]):
    """The transform TimestampConverter, for `$Key` and `$Value`. Between two forms a date is in ms."""

    CONFIG = TimestampConverterConfig
    passes_null = False

    def prepare(self) -> None:
        """Compile the pattern."""
        config = self.config
        self._format = DateFormat(config.format) if config.format.strip() else None
        self._nanos = _NANOS_PER_UNIT[config.unix_precision]
        self._write: Callable[[int], Any] = {
            "string": self._to_string,
            "unix": self._to_unix,
            "Date": lambda millis: to_datetime(millis).date(),
            "Time": lambda millis: to_datetime(millis % MILLIS_PER_DAY).time(),
            "Timestamp": to_datetime,
        }[config.target_type]

    def _to_string(self, millis: int) -> str:
        assert self._format is not None
        try:
            return self._format.format(millis)
        except ValueError as e:
            raise DataError(str(e)) from e

    def _to_unix(self, millis: int) -> int:
        nanos = millis * 1_000_000
        value = nanos // self._nanos if nanos >= 0 else -(-nanos // self._nanos)
        return min(max(value, _LONG[0]), _LONG[1])

    def _read(self, kind: str, value: Any) -> int:
        """Return the ms since the epoch. Raises DataError if the value is not of this form."""
        if kind == "string":
            if self._format is None:
                raise DataError("a timestamp is a string, and the setting `format` is empty")
            try:
                return self._format.parse(value)
            except (ValueError, TypeError) as e:
                raise DataError(f"no timestamp: {e}") from e
        if kind == "unix":
            if not isinstance(value, int) or isinstance(value, bool):
                raise DataError(f"Unix time must be a whole number, and is {type(value).__name__}")
            nanos = value * self._nanos
            millis = nanos // 1_000_000 if nanos >= 0 else -(-nanos // 1_000_000)
            return min(max(millis, _LONG[0]), _LONG[1])
        return to_millis(value)

    def _converted(self, value: Any, kind: str | None) -> Any:
        return None if value is None else self._write(self._read(kind or _kind_of_value(value), value))

    def plain(self, value: Any, record: Any) -> Any:
        """Return the value, or the map with the field, converted."""
        field = self.config.field
        if value is None or not field:
            return self._converted(value, None)
        changed = as_map(value, _PURPOSE).copy()
        changed[field] = self._converted(changed.get(field), None)
        return changed

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError if its type has no timestamps."""
        name, make = self.config.field, _SCHEMAS[self.config.target_type]
        if not name:
            kind = _kind(schema)
            return Plan(
                schema, make(optional=schema.optional), lambda value, record: self._converted(value, kind)
            )
        copy = struct_copy(schema, self.config.replace_null_with_default, _PURPOSE)
        fields = dict(schema.fields)
        field = fields.get(name)
        if field is not None:
            fields[name] = make(optional=field.optional)

        def change(value: Any, record: Any) -> Any:
            if value is None:
                return None
            changed = copy(value)
            if field is not None:
                changed[name] = self._converted(changed.get(name), _kind(field))
            return changed

        default = None if schema.default is None else change(schema.default, None)
        updated = replace(schema, fields=fields, default=default)
        return Plan(schema, updated, change)


def _kind(schema: Schema) -> str:
    """Return the form of a schema's timestamps. Raises DataError if there is none."""
    if schema.name in _KINDS:
        return _KINDS[schema.name]
    if schema.type in (Type.STRING, Type.INT64):
        return "string" if schema.type is Type.STRING else "unix"
    raise DataError(f"a schema of type {schema.type.value} is no form of timestamps")


def _kind_of_value(value: Any) -> str:
    """Return the form of a value without schema. Raises DataError if it is none."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, int) and not isinstance(value, bool):
        return "unix"
    if isinstance(value, (dt.date, dt.time)):
        return "Timestamp"
    raise DataError(f"{type(value).__name__} is no form of timestamps")


class TimestampConverterKey(TimestampConverter, OnKey[TimestampConverterConfig]):
    """`TimestampConverter$Key`."""


class TimestampConverterValue(TimestampConverter, OnValue[TimestampConverterConfig]):
    """`TimestampConverter$Value`."""
