"""Avro schemas of Connect schemas, as Confluent's AvroData makes them.

    int8, int16     {"type": "int", "connect.type": "int8"}
    optional        ["null", T], or [T, "null"] if there is a default
    Decimal, Date, Time, Timestamp     decimal, date, time-millis, timestamp-millis
    map             "map" if keys are strings, else an array of records MapEntry of key and value
    struct          a record; without a name ConnectDefault, ConnectDefault2 ...

With `connect.meta.data`, what Avro has no word for goes along: connect.name, .version, .doc, .parameters and
.default. The docs of records and their fields are parameters of the struct.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.converters.json_values import to_json
from connect.errors import DataError

NAMESPACE = "io.confluent.connect.avro"
ENUM = f"{NAMESPACE}.Enum"
ENUM_DEFAULT = "org.apache.kafka.connect.data.Enum"
UNION = f"{NAMESPACE}.Union"
RECORD_DOC = f"{NAMESPACE}.record.doc"
FIELD_DOC = f"{NAMESPACE}.field.doc."
FIXED_SIZE = "connect.fixed.size"
PRECISION = "connect.decimal.precision"
_PRIMITIVES = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL = {DECIMAL: "decimal", DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AvroSchemas:
    """The Avro schemas of one Connect schema and of its parts: a named one is written out once."""

    def __init__(self, *, meta_data: bool, enhanced: bool) -> None:
        self._meta_data = meta_data
        self._enhanced = enhanced
        self._defined: dict[str, Schema] = {}
        self._unnamed = 0

    def of(self, schema: Schema) -> Any:
        """Return the schema as JSON values. Raises DataError for one that Avro cannot express."""
        if schema.name == UNION:
            return self._union(schema)
        base = self._base(schema)
        if not schema.optional:
            return base
        return ["null", base] if schema.default is None else [base, "null"]

    def _base(self, schema: Schema) -> Any:
        node = self._typed(schema)
        if isinstance(node, str) and node not in _PRIMITIVES.values():
            return node  # the name of a record that was written out before
        extra: dict[str, Any] = {}
        if self._meta_data:
            extra = _meta_data(schema)
            if schema.default is not None:
                extra["connect.default"] = default_of(schema, schema.default)
            if schema.type in (Type.INT8, Type.INT16):
                extra["connect.type"] = schema.type.value
        if schema.name in _LOGICAL:
            extra["logicalType"] = _LOGICAL[schema.name or ""]
        if not extra:
            return node
        return {**({"type": node} if isinstance(node, str) else node), **extra}

    def _typed(self, schema: Schema) -> Any:
        parameters = schema.parameters
        match schema.type:
            case Type.BYTES if schema.name == DECIMAL:
                return {
                    "type": "bytes",
                    "scale": int(parameters.get("scale", 0)),
                    "precision": int(parameters.get(PRECISION, 64)),
                }
            case Type.BYTES if FIXED_SIZE in parameters:
                return self._named(schema, {"type": "fixed", "size": int(parameters[FIXED_SIZE])})
            case Type.STRING if self._enhanced and (ENUM in parameters or ENUM_DEFAULT in parameters):
                return self._enum(schema, ENUM if ENUM in parameters else ENUM_DEFAULT)
            case Type.ARRAY if schema.values:
                return {"type": "array", "items": self.of(schema.values)}
            case Type.MAP if schema.keys and schema.values:
                if is_string_map(schema):
                    return {"type": "map", "values": self.of(schema.values)}
                return {"type": "array", "items": self._entry(schema)}
            case Type.STRUCT:
                return self._named(schema, {"type": "record", "fields": schema.fields})
            case kind if kind in _PRIMITIVES:
                return _PRIMITIVES[kind]
        raise DataError(f"Avro has no type for {schema.type.value} without the schema of its items")

    def _named(self, schema: Schema, node: dict[str, Any]) -> Any:
        """Return a named type, or its name if it was written out before."""
        full_name = schema.name
        if full_name is None:
            self._unnamed += 1
            number = self._unnamed if self._unnamed > 1 else ""
            full_name = f"{NAMESPACE}.ConnectDefault{number}"
        if (defined := self._defined.get(full_name)) is not None:
            if defined.fields != schema.fields:
                raise DataError(f"two structs have the name {full_name} and differ")
            return full_name
        self._defined[full_name] = schema
        namespace, _, name = full_name.rpartition(".")
        for part in full_name.split("."):
            _check_name(part)
        if "fields" in node:
            docs = schema.parameters
            node["fields"] = [
                self._field(field, of, docs.get(FIELD_DOC + field)) for field, of in schema.fields.items()
            ]
            if RECORD_DOC in docs:
                node["doc"] = docs[RECORD_DOC]
        return {**node, "name": name, **({"namespace": namespace} if namespace else {})}

    def _field(self, name: str, schema: Schema, doc: str | None = None) -> dict[str, Any]:
        _check_name(name)
        field: dict[str, Any] = {"name": name, "type": self.of(schema)}
        if doc is not None:
            field["doc"] = doc
        if schema.default is not None:
            field["default"] = default_of(schema, schema.default)
        elif schema.optional:
            field["default"] = None
        return field

    def _entry(self, schema: Schema) -> dict[str, Any]:
        assert schema.keys is not None and schema.values is not None
        fields = [self._field("key", schema.keys), self._field("value", schema.values)]
        self._unnamed += 1
        number = self._unnamed if self._unnamed > 1 else ""
        return {
            "type": "record",
            "name": f"MapEntry{number}",
            "namespace": NAMESPACE,
            "fields": fields,
            **({"connect.internal.type": "MapEntry"} if number else {}),
        }

    def _enum(self, schema: Schema, parameter: str) -> Any:
        full_name = schema.parameters[parameter]
        namespace, _, name = full_name.rpartition(".")
        prefix = parameter + "."
        symbols = [key[len(prefix) :] for key in schema.parameters if key.startswith(prefix)]
        if full_name in self._defined:
            return full_name
        self._defined[full_name] = schema
        return {"type": "enum", "name": name, "namespace": namespace, "symbols": symbols}

    def _union(self, schema: Schema) -> list[Any]:
        branches = [self._base(field) for field in schema.fields.values()]
        return ["null", *branches] if schema.optional else branches


def is_string_map(schema: Schema) -> bool:
    """Return True if the map is a map in Avro, too."""
    return schema.keys is not None and schema.keys.type is Type.STRING and not schema.keys.optional


def default_of(schema: Schema, value: Any) -> Any:
    """Return a default as Avro's JSON has it: bytes as the characters of their numbers."""
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get("scale", 0))
        unscaled = int(value.scaleb(scale))
        size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
    if schema.type is Type.BYTES:
        return bytes(value).decode("latin-1")
    if isinstance(value, dt.date | dt.time):
        convert = to_json(schema, "BASE64", fill=False)
        return value if convert is None else convert(value)
    if schema.type is Type.STRUCT:
        return {
            name: None if value.get(name) is None else default_of(of, value[name])
            for name, of in schema.fields.items()
        }
    if schema.type is Type.ARRAY and schema.values:
        return [default_of(schema.values, item) for item in value]
    if schema.type is Type.MAP and schema.values:
        return {key: default_of(schema.values, item) for key, item in value.items()}
    return value


def _meta_data(schema: Schema) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if schema.doc is not None:
        node["connect.doc"] = schema.doc
    if schema.version is not None:
        node["connect.version"] = schema.version
    if schema.parameters:
        node["connect.parameters"] = dict(schema.parameters)
    if schema.name is not None:
        node["connect.name"] = schema.name
    return node


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise DataError(f"{name!r} is no name in Avro: letters, digits and _ are, not beginning with a digit")
