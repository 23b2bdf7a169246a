"""Connect's schemas of Avro's, for the records of Avro files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.api import Schema, schema

_PRIMITIVE = {
    "boolean": schema.boolean,
    "int": schema.int32,
    "long": schema.int64,
    "float": schema.float32,
    "double": schema.float64,
    "bytes": schema.bytes_,
    "string": schema.string,
}
_TIMES = frozenset(("timestamp-millis", "timestamp-micros"))
_DAY_TIMES = frozenset(("time-millis", "time-micros"))
_DEPTH_MAX = 100


class _Unsupported(Exception):
    """A signal that Connect has no schema for a part."""


def connect_schema(avro: Any) -> Schema | None:
    """Return the Connect schema; None for unions of several types and types within themselves.

    Those records have no schema. Times of day and timestamps count milliseconds, as all of Connect's.
    """
    try:
        return _schema(avro, {}, 0)
    except _Unsupported:
        return None


def _schema(avro: Any, names: dict[str, Any], depth: int) -> Schema:
    if depth > _DEPTH_MAX:
        raise _Unsupported
    if isinstance(avro, list):
        return _union(avro, names, depth)
    if isinstance(avro, str):
        if avro in _PRIMITIVE:
            return _PRIMITIVE[avro]()
        if avro not in names:
            raise _Unsupported
        return _schema(names[avro], names, depth + 1)
    kind = avro["type"]
    if (logical := avro.get("logicalType")) is not None and (special := _logical(logical, avro)):
        return special
    match kind:
        case "record":
            names[avro["name"]] = avro
            fields = {each["name"]: _schema(each["type"], names, depth + 1) for each in avro["fields"]}
            return schema.struct(fields, name=avro["name"])
        case "enum":
            names[avro["name"]] = avro
            return schema.string()
        case "fixed":
            names[avro["name"]] = avro
            return schema.bytes_()
        case "array":
            return schema.array(_schema(avro["items"], names, depth + 1))
        case "map":
            return schema.map_(schema.string(), _schema(avro["values"], names, depth + 1))
    return _schema(kind, names, depth + 1)


def _union(avro: list[Any], names: dict[str, Any], depth: int) -> Schema:
    others = [each for each in avro if each != "null"]
    if len(others) != 1:
        raise _Unsupported
    inner = _schema(others[0], names, depth + 1)
    return inner.as_optional() if len(others) < len(avro) else inner


def _logical(name: str, avro: Mapping[str, Any]) -> Schema | None:
    """Return the schema of a logical type that fastavro reads as a value of its own."""
    if name == "decimal":
        return schema.decimal_(int(avro.get("scale", 0)))
    if name == "date":
        return schema.date()
    if name in _TIMES:
        return schema.timestamp()
    if name in _DAY_TIMES:
        return schema.time()
    if name == "uuid":
        return schema.string()
    if name.startswith("local-timestamp"):
        raise _Unsupported
    return None
