"""Conversion of values between Connect and fastavro, composed once per schema; None where they are the same.

fastavro has decimals, dates, times and timestamps as Connect does. What differs: maps whose keys are no
strings are lists of entries, a union's value is bare, and defaults take the place of nulls.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from connect.api.schema import DECIMAL, Schema, Type
from connect.converters.avro.to_avro import UNION, is_string_map
from connect.errors import DataError

Convert = Callable[[Any], Any]


def to_avro_value(schema: Schema) -> Convert | None:
    """Return the conversion from Connect values to fastavro's."""
    convert, default = _to_avro(schema), schema.default
    if default is None:
        return None if convert is None else lambda v: None if v is None else convert(v)

    def filled(value: Any) -> Any:
        value = default if value is None else value
        return value if convert is None else convert(value)

    return filled


def _to_avro(schema: Schema) -> Convert | None:
    if schema.name == UNION:
        converts = {name: to_avro_value(of) or _same for name, of in schema.fields.items()}
        return lambda v: _only_value(converts, v)
    match schema.type:
        case Type.BYTES if schema.name != DECIMAL:
            return lambda v: v if type(v) is bytes else bytes(v)
        case Type.ARRAY if schema.values:
            item = to_avro_value(schema.values) or _same
            return None if item is _same else lambda v: [item(i) for i in v]
        case Type.MAP if schema.keys and schema.values:
            key, item = (to_avro_value(of) or _same for of in (schema.keys, schema.values))
            if is_string_map(schema):
                return lambda v: {k: item(i) for k, i in v.items()}
            return lambda v: [{"key": key(k), "value": item(i)} for k, i in v.items()]
        case Type.STRUCT:
            fields = [(name, to_avro_value(of)) for name, of in schema.fields.items()]
            if all(convert is None for _, convert in fields):
                return None
            return lambda v: {name: (convert or _same)(v.get(name)) for name, convert in fields}
    return None


def from_avro_value(schema: Schema) -> Convert | None:
    """Return the conversion from fastavro's values to Connect's."""
    convert = _from_avro(schema)
    return None if convert is None else lambda v: None if v is None else convert(v)


def _from_avro(schema: Schema) -> Convert | None:
    if schema.name == UNION:
        return lambda v: _as_union(schema, v)
    match schema.type:
        case Type.ARRAY if schema.values:
            item = from_avro_value(schema.values) or _same
            return None if item is _same else lambda v: [item(i) for i in v]
        case Type.MAP if schema.keys and schema.values:
            key, item = (from_avro_value(of) or _same for of in (schema.keys, schema.values))
            if is_string_map(schema):
                return None if item is _same else lambda v: {k: item(i) for k, i in v.items()}
            return lambda v: {key(e["key"]): item(e["value"]) for e in v}
        case Type.STRUCT:
            fields = [(name, from_avro_value(of)) for name, of in schema.fields.items()]
            if all(convert is None for _, convert in fields):
                return None
            return lambda v: {name: (convert or _same)(v[name]) for name, convert in fields}
    return None


def _same(value: Any) -> Any:
    return value


def _only_value(converts: dict[str, Convert], value: Any) -> Any:
    """Return the value of a union's only field that is set."""
    present = [name for name in converts if value.get(name) is not None]
    if len(present) != 1:
        raise DataError(f"a union has {len(present)} values; one of {', '.join(converts)} must be set")
    return converts[present[0]](value[present[0]])


def _as_union(schema: Schema, value: Any) -> dict[str, Any]:
    """Return the value under the name of the first of the union's types that it fits."""
    for name, of in schema.fields.items():
        convert = from_avro_value(of) or _same
        try:
            converted = convert(value)
            of.check(converted)
        except (DataError, TypeError, KeyError, AttributeError):
            continue
        if of.name is None and isinstance(converted, dt.date | dt.time):
            continue
        return {**dict.fromkeys(schema.fields), name: converted}
    raise DataError(f"{type(value).__name__} is none of the union's types {', '.join(schema.fields)}")
