"""Conversion of schemas to the envelope's JSON and back.

{"type": "struct", "fields": [{"type": "int32", "optional": false, "field": "a"}], "optional": false}
"""

from __future__ import annotations

from typing import Any, TypeVar

from connect.api.schema import Schema, Type
from connect.converters.json_values import DecimalFormat, from_json, to_json
from connect.errors import DataError

T = TypeVar("T")


def schema_to_json(schema: Schema, decimals: DecimalFormat = "BASE64") -> dict[str, Any]:
    """Return the schema as JSON values, in the order Kafka writes them."""
    node: dict[str, Any] = {"type": schema.type.value}
    if schema.type is Type.ARRAY and schema.values:
        node["items"] = schema_to_json(schema.values, decimals)
    elif schema.type is Type.MAP and schema.keys and schema.values:
        node["keys"] = schema_to_json(schema.keys, decimals)
        node["values"] = schema_to_json(schema.values, decimals)
    elif schema.type is Type.STRUCT:
        node["fields"] = [{**schema_to_json(s, decimals), "field": n} for n, s in schema.fields.items()]
    node["optional"] = schema.optional
    for key in ("name", "version", "doc"):
        value = getattr(schema, key)
        if value is not None:
            node[key] = value
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        convert = to_json(schema, decimals, fill=False)
        node["default"] = convert(schema.default) if convert else schema.default
    return node


def schema_from_json(node: Any) -> Schema | None:
    """Return the schema encoded by JSON values, or None for null. Raises DataError if they encode none."""
    if node is None:
        return None
    try:
        kind = Type(node["type"])
        schema = Schema(
            type=kind,
            optional=node.get("optional") is True,
            name=_of_type(str, node.get("name")),
            version=_of_type(int, node.get("version")),
            doc=_of_type(str, node.get("doc")),
            parameters=_parameters(node.get("parameters")),
            fields={f["field"]: _part(f) for f in node["fields"]} if kind is Type.STRUCT else {},
            keys=_part(node["keys"]) if kind is Type.MAP else None,
            values=_part(node["items"])
            if kind is Type.ARRAY
            else _part(node["values"])
            if kind is Type.MAP
            else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise DataError(f"not a schema: {node!r}: {e!r}") from e
    if node.get("default") is None:
        return schema
    convert = from_json(schema, fill=False)
    default = convert(node["default"]) if convert else node["default"]
    return Schema(**{f: getattr(schema, f) for f in Schema.__slots__} | {"default": default})


def _part(node: Any) -> Schema:
    schema = schema_from_json(node)
    if schema is None:
        raise DataError("a part of a schema is null")
    return schema


def _of_type(kind: type[T], value: Any) -> T | None:
    """Return the value, or None if it is of another type: Kafka does not look at it then."""
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _parameters(node: Any) -> dict[str, str]:
    if not isinstance(node, dict):
        return {}
    if not all(isinstance(value, str) for value in node.values()):
        raise DataError("parameters of a schema must be strings")
    return node
