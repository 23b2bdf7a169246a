"""Connect schemas of Avro schemas, as Confluent's AvroData makes them: the reverse of `to_avro`.

A union of several types is a struct named Union, with an optional field per type. An enum is a string whose
parameters have its name and symbols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.converters.avro.to_avro import (
    ENUM,
    FIELD_DOC,
    FIXED_SIZE,
    NAMESPACE,
    PRECISION,
    RECORD_DOC,
    UNION,
)
from connect.converters.json_values import from_json
from connect.errors import DataError

_PRIMITIVES = {
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}
_LOGICAL = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("bytes", "decimal"): DECIMAL,
}
_DEFAULT_NAME = re.compile(rf"{re.escape(NAMESPACE)}\.(ConnectDefault|MapEntry)\d*")


class ConnectSchemas:
    """The Connect schemas of one Avro schema and of its parts. `named`: full name -> its definition."""

    def __init__(self, named: Mapping[str, Any], *, meta_data: bool) -> None:
        self._named = named
        self._meta_data = meta_data
        self._open: list[str] = []
        """The names of the records that the current one is within."""

    def of(self, node: Any) -> Schema:
        """Return the schema. Raises DataError for a recursive one, which Connect cannot express."""
        if isinstance(node, list):
            return self._union(node)
        node = self._defined(node)
        if isinstance(node, str):
            node = {"type": node}
        return self._decorated(self._typed(node), node)

    def _defined(self, node: Any) -> Any:
        """Return the definition of a named type, or the node if it is no name."""
        if not isinstance(node, str) or node in _PRIMITIVES or node == "null":
            return node
        if node not in self._named:
            raise DataError(f"the Avro schema uses {node!r}, which it does not define")
        return self._named[node]

    def _typed(self, node: Mapping[str, Any]) -> Schema:
        match node["type"]:
            case "record" | "error":
                return self._record(node)
            case "enum":
                name = full_name(node)
                symbols = {f"{ENUM}.{symbol}": str(symbol) for symbol in node["symbols"]}
                parameters = {ENUM: name, **symbols} if self._meta_data else {}
                return Schema(type=Type.STRING, name=name, parameters=parameters)
            case "fixed":
                if node.get("logicalType") == "decimal":
                    return _decimal(node)
                return Schema(
                    type=Type.BYTES, name=full_name(node), parameters={FIXED_SIZE: str(node["size"])}
                )
            case "array" if is_map_entry(entry := self._defined(node["items"])):
                fields = {field["name"]: self._field(field) for field in entry["fields"]}
                return Schema(type=Type.MAP, keys=fields["key"], values=fields["value"])
            case "array":
                return Schema(type=Type.ARRAY, values=self.of(node["items"]))
            case "map":
                keys = Schema(type=Type.STRING)
                return Schema(type=Type.MAP, keys=keys, values=self.of(node["values"]))
            case str() as kind if kind in _PRIMITIVES:
                return self._primitive(kind, node)
            case "null":
                raise DataError("Connect has no type null")
            case inner:
                return self.of(inner)

    def _primitive(self, kind: str, node: Mapping[str, Any]) -> Schema:
        logical = _LOGICAL.get((kind, str(node.get("logicalType"))))
        if logical == DECIMAL:
            return _decimal(node)
        if logical is not None:
            return Schema(type=_PRIMITIVES[kind], name=logical, version=1)
        narrow = node.get("connect.type")
        if kind == "int" and narrow in ("int8", "int16"):
            return Schema(type=Type(narrow))
        return Schema(type=_PRIMITIVES[kind])

    def _record(self, node: Mapping[str, Any]) -> Schema:
        name = full_name(node)
        if name in self._open:
            raise DataError(f"the Avro record {name} is within itself, and Connect has no such structs")
        self._open.append(name)
        fields = {field["name"]: self._field(field) for field in node["fields"]}
        self._open.pop()
        docs = {FIELD_DOC + field["name"]: field["doc"] for field in node["fields"] if field.get("doc")}
        if node.get("doc"):
            docs[RECORD_DOC] = node["doc"]
        return Schema(
            type=Type.STRUCT,
            name=None if _DEFAULT_NAME.fullmatch(name) else name,
            fields=fields,
            parameters=docs if self._meta_data else {},
        )

    def _field(self, field: Mapping[str, Any]) -> Schema:
        schema = self.of(field["type"])
        if field.get("default") is not None and schema.name != UNION:
            schema = replace(schema, default=_default(schema, field["default"]))
        return schema

    def _union(self, branches: list[Any]) -> Schema:
        others = [branch for branch in branches if branch != "null"]
        is_optional = len(others) < len(branches)
        if len(others) == 1:
            return replace(self.of(others[0]), optional=is_optional)
        fields = {branch_name(branch): replace(self.of(branch), optional=True) for branch in others}
        return Schema(type=Type.STRUCT, name=UNION, fields=fields, optional=is_optional)

    def _decorated(self, schema: Schema, node: Mapping[str, Any]) -> Schema:
        """Return the schema with what `connect.meta.data` has written beside it."""
        if not self._meta_data:
            return schema
        parameters = node.get("connect.parameters")
        if isinstance(parameters, dict):
            schema = replace(schema, parameters={**schema.parameters, **parameters})
        schema = replace(
            schema,
            name=node.get("connect.name", schema.name),
            version=node.get("connect.version", schema.version),
            doc=node.get("connect.doc", schema.doc),
        )
        if node.get("connect.default") is not None:
            schema = replace(schema, default=_default(schema, node["connect.default"]))
        return schema


def full_name(node: Mapping[str, Any]) -> str:
    """Return a named type's name with its namespace."""
    name, namespace = str(node["name"]), node.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name


def branch_name(branch: Any) -> str:
    """Return the field's name of a union's type: the type, or a named type's name without its namespace."""
    if isinstance(branch, str):
        return branch.rpartition(".")[2]
    kind = branch["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return full_name(branch).rpartition(".")[2]
    return str(kind)


def is_map_entry(node: Any) -> bool:
    """Return True if an array's items are a map's entries."""
    return isinstance(node, dict) and (
        node.get("connect.internal.type") == "MapEntry"
        or (node.get("type") == "record" and full_name(node) == f"{NAMESPACE}.MapEntry")
    )


def _decimal(node: Mapping[str, Any]) -> Schema:
    parameters = {"scale": str(node.get("scale", 0))}
    if node.get("precision", 64) != 64:
        parameters[PRECISION] = str(node["precision"])
    return Schema(type=Type.BYTES, name=DECIMAL, version=1, parameters=parameters)


def _default(schema: Schema, value: Any) -> Any:
    """Return a default of Avro's JSON as a Connect value."""
    if schema.type is Type.BYTES:
        raw = str(value).encode("latin-1")
        if schema.name != DECIMAL:
            return raw
        unscaled = int.from_bytes(raw, "big", signed=True)
        convert = from_json(replace(schema, default=None), fill=False)
        assert convert is not None
        return convert(unscaled).scaleb(-int(schema.parameters["scale"]))
    if schema.type in (Type.STRUCT, Type.ARRAY, Type.MAP):
        return _nested_default(schema, value)
    convert = from_json(replace(schema, default=None), fill=False)
    return value if convert is None else convert(value)


def _nested_default(schema: Schema, value: Any) -> Any:
    if schema.type is Type.STRUCT:
        return {
            name: of.default if value.get(name) is None else _default(of, value[name])
            for name, of in schema.fields.items()
        }
    if schema.type is Type.ARRAY and schema.values:
        return [_default(schema.values, item) for item in value]
    assert schema.values is not None
    if isinstance(value, list):
        raise DataError("a default of a map with keys other than strings is not supported")
    return {key: _default(schema.values, item) for key, item in value.items()}
