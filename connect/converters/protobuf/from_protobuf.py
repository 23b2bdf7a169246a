"""Connect schemas of Protobuf's descriptors, as Confluent's ProtobufData makes them.

A oneof is an optional struct whose field's name ends with the oneof's position: `choice_0`. Fields are
optional, unless `optional.for.nullables` or `wrapper.for.nullables` says which ones are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.converters.protobuf.names import (
    CONNECT_TYPE,
    ENUM,
    GENERAL_ENUM,
    GENERAL_UNION,
    PRECISION,
    TAG,
    TYPE,
    UNION_PREFIX,
    Options,
)
from connect.converters.protobuf.options import field_params
from connect.errors import DataError

F = FieldDescriptor
SCHEMAS_MAX = 20_000
"""The most fields of a schema and of the messages in it, each as often as it is used."""
_TYPES = {
    F.TYPE_INT32: (Type.INT32, None),
    F.TYPE_SINT32: (Type.INT32, "sint32"),
    F.TYPE_SFIXED32: (Type.INT32, "sfixed32"),
    F.TYPE_UINT32: (Type.INT64, "uint32"),
    F.TYPE_FIXED32: (Type.INT64, "fixed32"),
    F.TYPE_INT64: (Type.INT64, None),
    F.TYPE_UINT64: (Type.INT64, "uint64"),
    F.TYPE_SINT64: (Type.INT64, "sint64"),
    F.TYPE_FIXED64: (Type.INT64, "fixed64"),
    F.TYPE_SFIXED64: (Type.INT64, "sfixed64"),
    F.TYPE_FLOAT: (Type.FLOAT32, None),
    F.TYPE_DOUBLE: (Type.FLOAT64, None),
    F.TYPE_BOOL: (Type.BOOLEAN, None),
    F.TYPE_STRING: (Type.STRING, None),
    F.TYPE_BYTES: (Type.BYTES, None),
}
"""Connect's type, and the parameter that says which of Protobuf's it was."""
_SMALL = {"int8": Type.INT8, "int16": Type.INT16}
_LOGICAL = {"google.type.Date": DATE, "google.type.TimeOfDay": TIME, "google.protobuf.Timestamp": TIMESTAMP}
_WRAPPED = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}


def is_map(field: Any) -> bool:
    """Return True if a repeated field's messages are entries with a key and a value."""
    if field.message_type is None or not field.is_repeated:
        return False
    fields = field.message_type.fields
    return (
        field.message_type.name.endswith("Entry")
        and [each.name for each in fields] == ["key", "value"]
        and not any(each.is_repeated for each in fields)
    )


@lru_cache(maxsize=64)
def _proto3_optionals(message: Any) -> frozenset[str]:
    """Return the names of a message's fields whose oneof only says whether they are set."""
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    return frozenset(field.name for field in proto.field if field.proto3_optional)


def real_oneofs(message: Any) -> list[Any]:
    """Return a message's oneofs without those of single `optional` fields."""
    optionals = _proto3_optionals(message)
    return [each for each in message.oneofs if each.fields[0].name not in optionals]


def is_proto3_optional(field: Any) -> bool:
    """Return True if the field stands in a oneof that only says whether it is set."""
    return field.containing_oneof is not None and field.name in _proto3_optionals(field.containing_type)


class ConnectSchemas:
    """The Connect schemas of one message and of its parts."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._structs: dict[str, tuple[Schema, int]] = {}
        self._open: list[str] = []
        self._count = 0

    def of(self, message: Any) -> Schema:
        """Return the schema of a message. Raises DataError for what Connect lacks, as recursive messages."""
        if self._options.wrapper_for_raw_primitives and message.full_name in _WRAPPED:
            return Schema(type=_WRAPPED[message.full_name])
        return self._struct(message)

    def _name(self, descriptor: Any) -> str:
        return str(descriptor.full_name if self._options.enhanced_schemas else descriptor.name)

    def _struct(self, message: Any) -> Schema:
        """Return the schema of a message, the same for each of its uses."""
        name = message.full_name
        before = self._count
        if name in self._open:
            raise DataError(f"Protobuf message {name} contains itself, which a Connect schema cannot express")
        if name in self._structs:
            schema, count = self._structs[name]
            self._add(count)
            return schema
        self._open.append(name)
        fields = {}
        for oneof in real_oneofs(message):
            fields[f"{oneof.name}_{oneof.index}"] = self._oneof(oneof)
        in_oneofs = {field.name for oneof in real_oneofs(message) for field in oneof.fields}
        for field in message.fields:
            if field.name not in in_oneofs:
                fields[field.name] = self._field(field)
        self._open.pop()
        schema = Schema(type=Type.STRUCT, name=self._name(message), fields=fields)
        self._structs[name] = (schema, self._count - before)
        return schema

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > SCHEMAS_MAX:
            raise DataError(f"the Protobuf message has more than {SCHEMAS_MAX} fields, with its parts")

    def _oneof(self, oneof: Any) -> Schema:
        fields = {field.name: self._field(field) for field in oneof.fields}
        name = oneof.name
        if self._options.generalized_sum_types:
            return Schema(
                type=Type.STRUCT, name=name, fields=fields, optional=True, parameters={GENERAL_UNION: name}
            )
        if self._options.enhanced_schemas:
            name = oneof.full_name
        return Schema(type=Type.STRUCT, name=UNION_PREFIX + name, fields=fields, optional=True)

    def _field(self, field: Any) -> Schema:
        self._add(1)
        schema = self._typed(field)
        if field.is_repeated and schema.type is not Type.MAP:
            schema = Schema(type=Type.ARRAY, values=replace(schema, optional=True), optional=True)
        options = self._options
        if options.optional_for_nullables:
            if has_optional_keyword(field):
                schema = replace(schema, optional=True)
        elif not options.wrapper_for_nullables:
            schema = replace(schema, optional=True)
        return replace(schema, parameters={**schema.parameters, TAG: str(field.number)})

    def _typed(self, field: Any) -> Schema:
        if field.type == F.TYPE_ENUM:
            return self._enum(field.enum_type)
        if field.type == F.TYPE_MESSAGE:
            return replace(self._of_message(field), optional=True)
        if field.type not in _TYPES:
            raise DataError(f"field {field.full_name} is a group, which has no type in Connect")
        kind, word = _TYPES[field.type]
        if kind is Type.INT32:
            kind = _SMALL.get(field_params(field.GetOptions()).get(CONNECT_TYPE, ""), kind)
            if kind is not Type.INT32:
                word = None
        return Schema(type=kind, parameters={TYPE: word} if word else {})

    def _of_message(self, field: Any) -> Schema:
        message = field.message_type
        full_name = message.full_name
        if full_name == "confluent.type.Decimal":
            params = field_params(field.GetOptions())
            parameters = {"scale": str(_whole(params.get("scale")) or 0)}
            if (precision := _whole(params.get("precision"))) is not None:
                parameters[PRECISION] = str(precision)
            return Schema(type=Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
        if full_name in _LOGICAL:
            kind = Type.INT64 if _LOGICAL[full_name] == TIMESTAMP else Type.INT32
            return Schema(type=kind, name=_LOGICAL[full_name], version=1)
        if self._options.wrapper_for_nullables and full_name in _WRAPPED:
            return Schema(type=_WRAPPED[full_name])
        if is_map(field):
            key, value = (self._field(each) for each in message.fields)
            return Schema(type=Type.MAP, keys=key, values=value, name=_map_field(self._name(message)))
        return self._struct(message)

    def _enum(self, enum: Any) -> Schema:
        parameter = GENERAL_ENUM if self._options.generalized_sum_types else ENUM
        values = {f"{parameter}.{value.name}": str(value.number) for value in enum.values}
        self._add(len(values))
        return Schema(
            type=Type.INT32 if self._options.int_for_enums else Type.STRING,
            name=self._name(enum),
            optional=True,
            parameters={parameter: enum.name, **values},
        )


def has_optional_keyword(field: Any) -> bool:
    """Return True if the .proto text says `optional` before the field."""
    if is_proto3_optional(field):
        return True
    return bool(
        field.has_presence
        and not field.is_repeated
        and not field.is_required
        and field.containing_oneof is None
        and field.message_type is None
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else None


def _map_field(name: str) -> str:
    """Return a map schema's name: `fooBarEntry` and `FooBarEntry` are of `foo_bar`."""
    stem = name.removesuffix("Entry")
    return re.sub(r"(?<!^)([A-Z])", r"_\1", stem).lower()
