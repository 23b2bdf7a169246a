"""JSON Schemas of Connect schemas and back, as Confluent's JsonSchemaData makes them.

    INT8 ... INT64   {"type": "integer", "connect.type": "int8"}
    FLOAT32, FLOAT64 {"type": "number", "connect.type": "float32"}
    BYTES            {"type": "string", "connect.type": "bytes"}
    MAP              {"type": "object", "connect.type": "map", "additionalProperties": ...}
    STRUCT           {"type": "object", "title": name, "properties": {"f": {"connect.index": 0, ...}}}
    optional         {"oneOf": [{"type": "null"}, ...]}

Schemas that somebody else wrote have no words of Connect: integers are INT64, numbers FLOAT64, and properties
that are not required are optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect.api.schema import DECIMAL, Schema, Type
from connect.converters.json_values import DecimalFormat, from_json, to_json
from connect.errors import DataError

_TYPES = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
    Type.BOOLEAN: ("boolean", None),
    Type.STRING: ("string", None),
    Type.BYTES: ("string", "bytes"),
}
_OF_CONNECT = {word: kind for kind, (_, word) in _TYPES.items() if word is not None}
_OF_JSON = {
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}
_DEPTH_MAX = 100
"""The most schemas within each other."""


def json_schema_of(schema: Schema, decimals: DecimalFormat) -> dict[str, Any]:
    """Return the JSON Schema. Raises DataError for a map whose keys are no strings."""
    node = _typed(schema, decimals)
    if schema.name is not None:
        node["title"] = schema.name
    if schema.doc is not None:
        node["description"] = schema.doc
    if schema.version is not None:
        node["connect.version"] = schema.version
    if schema.parameters:
        node["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        convert = to_json(replace(schema, default=None), decimals, fill=False)
        node["default"] = convert(schema.default) if convert else schema.default
    return {"oneOf": [{"type": "null"}, node]} if schema.optional else node


def _typed(schema: Schema, decimals: DecimalFormat) -> dict[str, Any]:
    match schema.type:
        case Type.ARRAY if schema.values:
            return {"type": "array", "items": json_schema_of(schema.values, decimals)}
        case Type.MAP if schema.keys and schema.values:
            if schema.keys.type is not Type.STRING or schema.keys.optional:
                raise DataError("maps whose keys are no strings cannot be written with a JSON Schema")
            values = json_schema_of(schema.values, decimals)
            return {"type": "object", "connect.type": "map", "additionalProperties": values}
        case Type.STRUCT:
            properties = {
                name: _indexed(json_schema_of(of, decimals), index)
                for index, (name, of) in enumerate(schema.fields.items())
            }
            return {"type": "object", "properties": properties}
        case kind if kind in _TYPES:
            json_type, word = _TYPES[kind]
            if schema.name == DECIMAL and decimals == "NUMERIC":
                json_type = "number"
            return {"type": json_type, **({"connect.type": word} if word else {})}
    raise DataError(f"{schema.type.value} without the schema of its items has no JSON Schema")


def _indexed(node: dict[str, Any], index: int) -> dict[str, Any]:
    return {"connect.index": index, **node}


class ConnectSchemas:
    """The Connect schemas of one JSON Schema document and of its parts."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def of(self, node: Any, depth: int = 0) -> Schema:
        """Return the schema. Raises DataError for what Connect cannot express, as a recursive schema."""
        if depth > _DEPTH_MAX:
            raise DataError(f"the JSON Schema is recursive, or deeper than {_DEPTH_MAX}")
        if not isinstance(node, dict):
            raise DataError(f"{node!r} is no JSON Schema that says a type")
        if "$ref" in node:
            return self.of(self._referred(str(node["$ref"])), depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(node.get(word), list):
                return self._one_of(node[word], depth)
        kind = node.get("type")
        if isinstance(kind, list):
            others = [each for each in kind if each != "null"]
            if len(others) != 1:
                raise DataError(f"a value of several types, {', '.join(map(str, kind))}, is none of Connect")
            return replace(self.of({**node, "type": others[0]}, depth + 1), optional=len(others) < len(kind))
        return self._described(self._typed(node, kind, depth), node)

    def _referred(self, reference: str) -> Any:
        node: Any = self._document
        if not reference.startswith("#"):
            raise DataError(f"the JSON Schema refers to {reference}, which is outside it")
        try:
            for part in filter(None, reference[1:].split("/")):
                node = node[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError) as e:
            raise DataError(f"the JSON Schema refers to {reference}, which it does not have") from e
        return node

    def _one_of(self, branches: list[Any], depth: int) -> Schema:
        others = [each for each in branches if each != {"type": "null"}]
        if len(others) != 1:
            raise DataError(f"a value of one of {len(others)} schemas is none of Connect")
        return replace(self.of(others[0], depth + 1), optional=len(others) < len(branches))

    def _typed(self, node: Mapping[str, Any], kind: Any, depth: int) -> Schema:
        word = node.get("connect.type")
        if kind == "array":
            return Schema(type=Type.ARRAY, values=self.of(node.get("items"), depth + 1))
        if word == "map" or (kind == "object" and "properties" not in node):
            values = self.of(node.get("additionalProperties"), depth + 1)
            return Schema(type=Type.MAP, keys=Schema(type=Type.STRING), values=values)
        if kind == "object":
            return Schema(type=Type.STRUCT, fields=self._fields(node, depth))
        if word in _OF_CONNECT:
            return Schema(type=_OF_CONNECT[word])
        if "enum" in node and all(isinstance(each, str) for each in node["enum"]):
            return Schema(type=Type.STRING)
        if kind not in _OF_JSON:
            raise DataError(f"a JSON Schema of type {kind!r} is none of Connect")
        return Schema(type=_OF_JSON[kind])

    def _fields(self, node: Mapping[str, Any], depth: int) -> dict[str, Schema]:
        """Return the fields by `connect.index`. Properties of schemas that Connect wrote are all required."""
        properties: Mapping[str, Any] = node["properties"]
        required = node.get("required") or ()
        fields = {}
        for name, each in sorted(properties.items(), key=lambda item: _index(item[1])):
            schema = self.of(each, depth + 1)
            if name not in required and _index(each) == _NO_INDEX:
                schema = replace(schema, optional=True)
            fields[name] = schema
        return fields

    def _described(self, schema: Schema, node: Mapping[str, Any]) -> Schema:
        parameters = node.get("connect.parameters")
        schema = replace(
            schema,
            name=node.get("title"),
            doc=node.get("description"),
            version=node.get("connect.version"),
            parameters=dict(parameters) if isinstance(parameters, dict) else {},
        )
        if node.get("default") is None:
            return schema
        convert = from_json(schema, fill=False)
        return replace(schema, default=convert(node["default"]) if convert else node["default"])


_NO_INDEX = 1 << 31


def _index(node: Any) -> int:
    index = node.get("connect.index") if isinstance(node, dict) else None
    return index if isinstance(index, int) else _NO_INDEX
