"""Schemas of keys and values: Connect's types and logical types, with Python values.

    type      Python value              logical type (name)                          Python value
    INT8..64  int                       org.apache.kafka.connect.data.Decimal        decimal.Decimal  (BYTES)
    FLOAT32/64 float                   org.apache.kafka.connect.data.Date           datetime.date    (INT32)
    BOOLEAN   bool                      org.apache.kafka.connect.data.Time           datetime.time    (INT32)
    STRING    str                       org.apache.kafka.connect.data.Timestamp      aware datetime   (INT64)
    BYTES     bytes
    ARRAY     list     MAP  dict     STRUCT  dict of its fields by name

A record without a schema carries any value its converter can write (for JSON: dict, list, str, numbers ...).
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from connect.errors import DataError


class Type(StrEnum):
    """Connect's schema types, by their names in the JSON envelope."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The shape of one value. Make one with the functions below (`int32()`, `struct(...)` ...)."""

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Schema] = field(default_factory=dict)
    """The fields of a STRUCT: field name -> schema, in order."""
    keys: Schema | None = None
    """The schema of the keys of a MAP."""
    values: Schema | None = None
    """The schema of the items of an ARRAY, or of the values of a MAP."""

    def check(self, value: Any, path: str = "value") -> None:
        """Raise DataError, naming the field, unless `value` fits."""
        if value is None:
            if not self.optional and self.default is None:
                raise DataError(f"{path} is required by its schema and is null")
            return
        expected = _PYTHON_OF_LOGICAL.get(self.name or "") or _PYTHON[self.type]
        if not isinstance(value, expected) or (isinstance(value, bool) and self.type is not Type.BOOLEAN):
            raise DataError(
                f"{path} is {type(value).__name__}, its schema says {self.name or self.type.value}"
            )
        low_high = _RANGES.get(self.type)
        if low_high and isinstance(value, int) and not low_high[0] <= value <= low_high[1]:
            raise DataError(f"{path} is {value}, out of range for {self.type.value}")
        self._check_parts(value, path)

    def _check_parts(self, value: Any, path: str) -> None:
        if self.type is Type.STRUCT:
            if not value.keys() <= self.fields.keys():
                undeclared = ", ".join(str(name) for name in value if name not in self.fields)
                raise DataError(f"{path} has fields that its schema does not declare: {undeclared}")
            for name, schema in self.fields.items():
                schema.check(value.get(name), f"{path}.{name}")
        elif self.type is Type.ARRAY and self.values:
            for i, item in enumerate(value):
                self.values.check(item, f"{path}[{i}]")
        elif self.type is Type.MAP and self.keys and self.values:
            for key, item in value.items():
                self.keys.check(key, f"{path} key")
                self.values.check(item, f"{path}[{key!r}]")

    def as_optional(self, default: Any = None) -> Schema:
        """Return the same schema with null allowed and with this default."""
        return replace(self, optional=True, default=default)


_PYTHON: dict[Type, type | tuple[type, ...]] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: dict,
    Type.STRUCT: dict,
}
_PYTHON_OF_LOGICAL: dict[str, type] = {
    DECIMAL: decimal.Decimal,
    DATE: dt.date,
    TIME: dt.time,
    TIMESTAMP: dt.datetime,
}
_RANGES = {
    kind: (-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in ((Type.INT8, 8), (Type.INT16, 16), (Type.INT32, 32), (Type.INT64, 64))
}


def _maker(kind: Type) -> Callable[..., Schema]:
    def make(
        *,
        optional: bool = False,
        default: Any = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
    ) -> Schema:
        return Schema(type=kind, optional=optional, default=default, name=name, version=version, doc=doc)

    make.__doc__ = f"A schema of type {kind.value}."
    return make


int8 = _maker(Type.INT8)
int16 = _maker(Type.INT16)
int32 = _maker(Type.INT32)
int64 = _maker(Type.INT64)
float32 = _maker(Type.FLOAT32)
float64 = _maker(Type.FLOAT64)
boolean = _maker(Type.BOOLEAN)
string = _maker(Type.STRING)
bytes_ = _maker(Type.BYTES)


def array(values: Schema, *, optional: bool = False) -> Schema:
    """Return the schema of a list whose items have the schema `values`."""
    return Schema(type=Type.ARRAY, values=values, optional=optional)


def map_(keys: Schema, values: Schema, *, optional: bool = False) -> Schema:
    """Return the schema of a dict with schemas for its keys and values."""
    return Schema(type=Type.MAP, keys=keys, values=values, optional=optional)


def struct(
    fields: Mapping[str, Schema],
    *,
    name: str | None = None,
    version: int | None = None,
    optional: bool = False,
) -> Schema:
    """Return the schema of a dict with these fields."""
    return Schema(type=Type.STRUCT, fields=dict(fields), name=name, version=version, optional=optional)


def decimal_(scale: int, *, optional: bool = False, default: Any = None) -> Schema:
    """Return the schema of an exact decimal with `scale` digits after the point."""
    return Schema(
        type=Type.BYTES,
        name=DECIMAL,
        version=1,
        parameters={"scale": str(scale)},
        optional=optional,
        default=default,
    )


def date(*, optional: bool = False) -> Schema:
    """Return the schema of a calendar day."""
    return Schema(type=Type.INT32, name=DATE, version=1, optional=optional)


def time(*, optional: bool = False) -> Schema:
    """Return the schema of a time of day, to the millisecond."""
    return Schema(type=Type.INT32, name=TIME, version=1, optional=optional)


def timestamp(*, optional: bool = False) -> Schema:
    """Return the schema of a timestamp, to the millisecond."""
    return Schema(type=Type.INT64, name=TIMESTAMP, version=1, optional=optional)
