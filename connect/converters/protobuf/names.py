"""Names and settings that both directions between Connect schemas and Protobuf share."""

from __future__ import annotations

from typing import NamedTuple

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

NAMESPACE = "io.confluent.connect.protobuf"
ENUM = f"{NAMESPACE}.Enum"
UNION_PREFIX = f"{NAMESPACE}.Union."
TAG = f"{NAMESPACE}.Tag"
"""The parameter with a field's number."""
TYPE = f"{NAMESPACE}.Type"
"""The parameter with a field's type in Protobuf, if it is not the usual one of its Connect type."""
GENERAL_ENUM = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION = "org.apache.kafka.connect.data.Union"
PRECISION = "connect.decimal.precision"
CONNECT_TYPE = "connect.type"
META_FILE = "confluent/meta.proto"
WRAPPERS_FILE = "google/protobuf/wrappers.proto"
LOGICAL_TYPES = {
    DECIMAL: ("confluent/type/decimal.proto", "confluent.type.Decimal"),
    DATE: ("google/type/date.proto", "google.type.Date"),
    TIME: ("google/type/timeofday.proto", "google.type.TimeOfDay"),
    TIMESTAMP: ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
}
"""Connect's logical types: the file and the full name of their messages."""
WRAPPERS = {
    "double": "google.protobuf.DoubleValue",
    "float": "google.protobuf.FloatValue",
    "bool": "google.protobuf.BoolValue",
    "string": "google.protobuf.StringValue",
    "bytes": "google.protobuf.BytesValue",
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "google.protobuf.Int32Value"),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), "google.protobuf.Int64Value"),
    **dict.fromkeys(("uint32", "fixed32"), "google.protobuf.UInt32Value"),
    **dict.fromkeys(("uint64", "fixed64"), "google.protobuf.UInt64Value"),
}
"""The wrapper messages of Protobuf's types."""


class Options(NamedTuple):
    """Settings of the converter that decide about schemas, by Confluent's names."""

    enhanced_schemas: bool = False
    generalized_sum_types: bool = False
    scrub_invalid_names: bool = False
    int_for_enums: bool = False
    optional_for_nullables: bool = False
    optional_for_proto2: bool = True
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True

    def enum_parameter(self, schema: Schema) -> str | None:
        """Return the parameter that makes a string or int an enum, or None."""
        names = (ENUM,) if schema.type is Type.INT32 else (GENERAL_ENUM, ENUM)
        if schema.type not in (Type.STRING, Type.INT32):
            return None
        return next((name for name in names if name in schema.parameters), None)


def is_union(schema: Schema) -> bool:
    """Return True if the struct is a oneof: one of its fields has a value."""
    return schema.type is Type.STRUCT and (
        (schema.name or "").startswith(UNION_PREFIX) or GENERAL_UNION in schema.parameters
    )
