"""Arrow types of Connect's schemas, logical types included."""

from __future__ import annotations

import pyarrow as pa

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

_LOGICAL = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}
_PLAIN = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


def arrow_type(schema: Schema) -> pa.DataType:
    """Return the Arrow type of a schema's values."""
    if schema.name == DECIMAL:
        return pa.decimal128(38, int(schema.parameters.get("scale", 0)))
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    match schema.type:
        case Type.ARRAY if schema.values:
            return pa.list_(arrow_type(schema.values))
        case Type.MAP if schema.keys and schema.values:
            return pa.map_(arrow_type(schema.keys), arrow_type(schema.values))
        case Type.STRUCT:
            return pa.struct([pa.field(n, arrow_type(s), s.optional) for n, s in schema.fields.items()])
    return _PLAIN[schema.type]
