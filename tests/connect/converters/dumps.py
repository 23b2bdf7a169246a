"""Schemas and values as text, as tests/java/ConnectData.java prints them; and that program."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import struct
from collections.abc import Sequence
from typing import Any

from connect.api.schema import TIME, Schema, Type
from tests.support.java import run_program

_NAMES = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS = dt.timedelta(milliseconds=1)


def java(lines: Sequence[tuple[str, str, bytes | None]], *arguments: str) -> list[str]:
    """Return what Kafka's converters make of bytes; each line is class, settings, bytes."""
    texts = (f"{name}|{settings}|{encoded(data)}" for name, settings, data in lines)
    return run_program("ConnectData", *arguments, stdin="\n".join(texts)).splitlines()


def encoded(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def decoded(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)


def schema_dump(schema: Schema | None) -> str:
    if schema is None:
        return "null"
    text = _NAMES.get(schema.type, schema.type.value) + ("?" if schema.optional else "")
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            text += f" {name}={getattr(schema, name)}"
    if schema.parameters:
        text += " parameters={" + ", ".join(f"{k}={v}" for k, v in sorted(schema.parameters.items())) + "}"
    if schema.default is not None:
        text += f" default={value_dump(schema, schema.default)}"
    if schema.type is Type.STRUCT:
        text += "".join(f" {name}={schema_dump(of)}" for name, of in schema.fields.items())
    if schema.type is Type.MAP:
        text += f" keys={schema_dump(schema.keys)}"
    if schema.type in (Type.MAP, Type.ARRAY):
        text += f" values={schema_dump(schema.values)}"
    return f"({text})"


def value_dump(schema: Schema | None, value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean:{'true' if value else 'false'}"
        case int():
            return f"integer:{value}"
        case float() if schema is not None and schema.type is Type.FLOAT32:
            return f"float:{struct.unpack('>I', struct.pack('>f', value))[0]:x}"
        case float():
            return f"double:{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"
        case decimal.Decimal():
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return f"decimal:{unscaled}e{exponent}"
        case bytes():
            return f"bytes:{encoded(value)}"
        case str():
            return f"string:{encoded(value.encode('utf-8', 'replace'))}"
        case list():
            of = schema.values if schema else None
            return f"[{','.join(value_dump(of, item) for item in value)}]"
        case dict() if schema is not None and schema.type is Type.STRUCT:
            fields = schema.fields.items()
            return f"({','.join(f'{name}={value_dump(of, value.get(name))}' for name, of in fields)})"
        case dict():
            keys, values = (schema.keys, schema.values) if schema else (None, None)
            entries = (f"{value_dump(keys, k)}={value_dump(values, v)}" for k, v in value.items())
            return f"{{{','.join(sorted(entries))}}}"
        case _:
            return f"time:{_milliseconds(schema, value)}"


def _milliseconds(schema: Schema | None, value: Any) -> int:
    if isinstance(value, dt.time):
        assert schema is None or schema.name == TIME
        value = dt.datetime.combine(_EPOCH.date(), value, dt.UTC)
    elif not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time(), dt.UTC)
    return (value - _EPOCH) // _MS
