"""Conversion of Protobuf messages to Connect values, composed once per schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as F

from connect.api.schema import Schema, Type
from connect.converters.protobuf.from_protobuf import (
    has_optional_keyword,
    is_map,
    is_proto3_optional,
    real_oneofs,
)
from connect.converters.protobuf.logical_values import from_message
from connect.converters.protobuf.names import LOGICAL_TYPES, Options

Convert = Callable[[Any], Any]


def to_value(schema: Schema, message: Any, options: Options) -> Convert:
    """Return the conversion of messages to values of the schema that ConnectSchemas made of them."""
    if schema.type is not Type.STRUCT:
        return _unwrapped(schema, message)
    return _Composer(options).struct(schema, message)


class _Composer:
    """Makes the conversions of one schema, one for each message that occurs in it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._structs: dict[str, Convert] = {}

    def struct(self, schema: Schema, message: Any) -> Convert:
        """Return the conversion of a message to a struct."""
        if message.full_name not in self._structs:
            self._structs[message.full_name] = self._struct(schema, message)
        return self._structs[message.full_name]

    def _struct(self, schema: Schema, message: Any) -> Convert:
        oneofs = []
        for oneof in real_oneofs(message):
            key = f"{oneof.name}_{oneof.index}"
            union = schema.fields[key]
            converts = {each.name: self._one(union.fields[each.name], each) for each in oneof.fields}
            oneofs.append((key, oneof.name, dict.fromkeys(union.fields), converts))
        fields = []
        in_oneofs = {field.name for oneof in real_oneofs(message) for field in oneof.fields}
        for field in message.fields:
            if field.name not in in_oneofs:
                of = schema.fields[field.name]
                fields.append((field.name, self._may_be_null(of, field), self._of(of, field)))

        def convert(value: Any) -> dict[str, Any]:
            converted: dict[str, Any] = {}
            for key, oneof_name, empty, converts in oneofs:
                chosen = value.WhichOneof(oneof_name)
                if chosen is None:
                    converted[key] = None
                else:
                    item, of_item = getattr(value, chosen), converts[chosen]
                    converted[key] = {**empty, chosen: item if of_item is None else of_item(item)}
            for name, may_be_null, of_field in fields:
                if may_be_null and not value.HasField(name):
                    converted[name] = None
                else:
                    item = getattr(value, name)
                    converted[name] = item if of_field is None else of_field(item)
            return converted

        return convert

    def _may_be_null(self, schema: Schema, field: Any) -> bool:
        """Return True if a field that is not set is a null, not the default of its type."""
        if field.is_repeated or not field.has_presence or not schema.optional:
            return False
        if field.type == F.TYPE_MESSAGE or is_proto3_optional(field):
            return True
        return self._options.optional_for_proto2 and has_optional_keyword(field)

    def _of(self, schema: Schema, field: Any) -> Convert | None:
        """Return the conversion of a field's values, None if they stay the same."""
        if schema.type is Type.MAP and is_map(field):
            return self._map(schema, field.message_type)
        if schema.type is Type.ARRAY:
            assert schema.values is not None
            item = self._one(schema.values, field)
            return list if item is None else lambda v: [item(each) for each in v]
        return self._one(schema, field)

    def _map(self, schema: Schema, entry: Any) -> Convert:
        assert schema.keys is not None and schema.values is not None
        key = self._one(schema.keys, entry.fields_by_name["key"]) or _same
        of_value = entry.fields_by_name["value"]
        value = self._one(schema.values, of_value) or _same
        if entry.GetOptions().map_entry:
            return lambda v: {key(k): value(i) for k, i in v.items()}
        nullable = self._may_be_null(schema.values, of_value)
        return lambda v: {
            key(e.key): None if nullable and not e.HasField("value") else value(e.value) for e in v
        }

    def _one(self, schema: Schema, field: Any) -> Convert | None:
        if schema.name in LOGICAL_TYPES and field.message_type is not None:
            return from_message(schema.name or "")
        if schema.type is Type.STRUCT:
            return self.struct(schema, field.message_type)
        if field.message_type is not None:
            return _unwrapped(schema, field.message_type)
        return _scalar(schema, field)


def _unwrapped(schema: Schema, message: Any) -> Convert:
    convert = _scalar(schema, message.fields_by_name["value"]) or _same
    return lambda v: convert(v.value)


def _scalar(schema: Schema, field: Any) -> Convert | None:
    """Return the conversion of values that are no messages. Numbers beyond int64 become negative."""
    if field.type == F.TYPE_ENUM and schema.type is Type.STRING:
        enum = field.enum_type
        names = {number: value.name for number, value in enum.values_by_number.items()}
        return lambda v: names.get(v) or f"UNKNOWN_ENUM_VALUE_{enum.name}_{v}"
    if field.type in (F.TYPE_UINT64, F.TYPE_FIXED64):
        return lambda v: v - (1 << 64) if v >> 63 else v
    return None


def _same(value: Any) -> Any:
    return value
