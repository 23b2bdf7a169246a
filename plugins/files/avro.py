"""Avro schemas of Connect's, for Avro files."""

from __future__ import annotations

from typing import Any

from connect.api import DataError, Schema, Type
from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP

_TYPES = {
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
_LOGICAL = {
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "int", "logicalType": "time-millis"},
    TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
}
_PRECISION = 64
"""Digits of a decimal, as Confluent's converter writes."""


def avro_schema(schema: Schema, name: str = "ConnectDefault") -> Any:
    """Return the Avro schema of a Connect schema; `name` is for a record without a name.

    Raises DataError for a map whose keys are no strings, which Avro has not.
    """
    declared = _required(schema, name)
    return ["null", declared] if schema.optional else declared


def _required(schema: Schema, name: str) -> Any:
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get("scale", 0))
        return {"type": "bytes", "logicalType": "decimal", "precision": _PRECISION, "scale": scale}
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    match schema.type:
        case Type.STRUCT:
            own = (schema.name or name).replace("-", "_")
            fields = [{"name": n, "type": avro_schema(s, f"{own}_{n}")} for n, s in schema.fields.items()]
            return {"type": "record", "name": own, "fields": fields}
        case Type.ARRAY if schema.values:
            return {"type": "array", "items": avro_schema(schema.values, f"{name}_item")}
        case Type.MAP if schema.values:
            if schema.keys is None or schema.keys.type is not Type.STRING:
                raise DataError("Avro's maps have keys of type string")
            return {"type": "map", "values": avro_schema(schema.values, f"{name}_value")}
    return _TYPES[schema.type]
