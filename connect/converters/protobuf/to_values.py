"""Conversion of Connect values to the fields of Protobuf messages, composed once per schema.

Fields are matched by name, so that values can be written by a schema that somebody else registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as F

from connect.api.schema import Schema, Type
from connect.converters.protobuf.from_protobuf import is_map
from connect.converters.protobuf.logical_values import to_fields
from connect.converters.protobuf.names import LOGICAL_TYPES, WRAPPERS, Options, is_union
from connect.converters.protobuf.to_protobuf import scrubbed
from connect.errors import DataError

Convert = Callable[[Any], Any]
_UNSIGNED = (F.TYPE_UINT64, F.TYPE_FIXED64)
_WRAPPER_NAMES = frozenset(WRAPPERS.values())
_CPP_TYPES = {
    Type.STRING: (F.CPPTYPE_STRING,),
    Type.BYTES: (F.CPPTYPE_STRING,),
    Type.BOOLEAN: (F.CPPTYPE_BOOL,),
    Type.FLOAT32: (F.CPPTYPE_FLOAT, F.CPPTYPE_DOUBLE),
    Type.FLOAT64: (F.CPPTYPE_FLOAT, F.CPPTYPE_DOUBLE),
}
_WHOLE = (F.CPPTYPE_INT32, F.CPPTYPE_INT64, F.CPPTYPE_UINT32, F.CPPTYPE_UINT64, F.CPPTYPE_ENUM)


def to_message(schema: Schema, cls: Any, options: Options, *, strict: bool) -> Callable[[Any], Any]:
    """Return the conversion of a schema's values to messages of `cls`.

    With `strict`, a field that the message lacks is a DataError; else it is left out.
    """
    message = cls.DESCRIPTOR
    if schema.type is not Type.STRUCT:
        if message.full_name not in _WRAPPER_NAMES:
            raise DataError(f"the schema's message is {message.full_name}, and the values are no structs")
        wrapped = _Composer(options, strict).scalar(schema, message.fields_by_name["value"])
        return lambda value: cls(value=value if wrapped is None else wrapped(value))
    fields = _Composer(options, strict).struct(schema, message)
    return lambda value: cls(**fields(value))


class _Composer:
    """Makes the conversions of one schema."""

    def __init__(self, options: Options, strict: bool) -> None:
        self._options = options
        self._strict = strict

    def struct(self, schema: Schema, message: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Return the conversion of a struct to the fields of its message."""
        fields: list[tuple[str, str, Any, Convert | None]] = []
        unions: list[tuple[str, Callable[[Any], dict[str, Any]]]] = []
        for name, of in schema.fields.items():
            if is_union(of):
                unions.append((name, self._union(of, message)))
                continue
            field = self._field(name, message)
            if field is not None:
                fields.append((name, field.name, of.default, self._of(of, field)))

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            converted = {}
            for name, to, default, convert_one in fields:
                item = value.get(name)
                if item is None:
                    item = default
                    if item is None:
                        continue
                converted[to] = item if convert_one is None else convert_one(item)
            for name, of_union in unions:
                if value.get(name) is not None:
                    converted.update(of_union(value[name]))
            return converted

        return convert

    def _field(self, name: str, message: Any) -> Any:
        field = message.fields_by_name.get(scrubbed(name) if self._options.scrub_invalid_names else name)
        if field is None and self._strict:
            raise DataError(f"Protobuf message {message.full_name} of the registry has no field {name}")
        return field

    def _union(self, schema: Schema, message: Any) -> Callable[[Any], dict[str, Any]]:
        fields = {}
        for name, of in schema.fields.items():
            field = self._field(name, message)
            if field is not None:
                fields[name] = (field.name, self._of(of, field) or _same)

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            present = [name for name, item in value.items() if item is not None]
            if len(present) != 1:
                raise DataError(f"a oneof has {len(present)} values; one of {', '.join(fields)} must be set")
            if present[0] not in fields:
                return {}
            name, of = fields[present[0]]
            return {name: of(value[present[0]])}

        return convert

    def _of(self, schema: Schema, field: Any) -> Convert | None:
        """Return the conversion of a field's values, None if they stay the same."""
        if field.is_repeated != (schema.type in (Type.ARRAY, Type.MAP)):
            raise _differ(schema, field)
        if schema.type is Type.ARRAY:
            assert schema.values is not None
            item = self._one(schema.values, field)
            return _checked_items if item is None else lambda v: [item(each) for each in _checked_items(v)]
        if schema.type is Type.MAP:
            return self._map(schema, field)
        return self._one(schema, field)

    def _map(self, schema: Schema, field: Any) -> Convert:
        if not is_map(field):
            raise _differ(schema, field)
        assert schema.keys is not None and schema.values is not None
        of_key, of_value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        key = self._one(schema.keys, of_key) or _same
        value = self._one(schema.values, of_value) or _same
        if not field.message_type.GetOptions().map_entry:
            return lambda v: [
                {"key": key(k)} if i is None else {"key": key(k), "value": value(i)} for k, i in v.items()
            ]
        if of_value.message_type is None:
            return lambda v: {key(k): value(_not_null(i)) for k, i in v.items()}
        cls = message_factory.GetMessageClass(of_value.message_type)
        return lambda v: {key(k): cls(**value(i)) if i is not None else cls() for k, i in v.items()}

    def _one(self, schema: Schema, field: Any) -> Convert | None:
        if schema.name in LOGICAL_TYPES:
            message = field.message_type
            if message is None or message.full_name != LOGICAL_TYPES[schema.name or ""][1]:
                raise _differ(schema, field)
            return to_fields(schema)
        if schema.type is Type.STRUCT:
            if field.message_type is None:
                raise _differ(schema, field)
            return self.struct(schema, field.message_type)
        if field.message_type is not None and field.message_type.full_name in _WRAPPER_NAMES:
            wrapped = self.scalar(schema, field.message_type.fields_by_name["value"]) or _same
            return lambda v: {"value": wrapped(v)}
        return self.scalar(schema, field)

    def scalar(self, schema: Schema, field: Any) -> Convert | None:
        """Return the conversion of values that are no messages."""
        if field.type == F.TYPE_ENUM and schema.type is Type.STRING:
            return _enum(field.enum_type)
        if field.cpp_type not in _CPP_TYPES.get(schema.type, _WHOLE):
            raise _differ(schema, field)
        if schema.type is Type.BYTES:
            if field.type != F.TYPE_BYTES:
                raise _differ(schema, field)
            return bytes
        if schema.type is Type.STRING and field.type != F.TYPE_STRING:
            raise _differ(schema, field)
        return (lambda v: v & 0xFFFF_FFFF_FFFF_FFFF) if field.type in _UNSIGNED else None


def _enum(enum: Any) -> Convert:
    numbers = {value.name: value.number for value in enum.values}

    def convert(value: str) -> int:
        if value not in numbers:
            raise DataError(f"{value!r} is no value of enum {enum.full_name}: {', '.join(numbers)}")
        return int(numbers[value])

    return convert


def _differ(schema: Schema, field: Any) -> DataError:
    kind = schema.name or schema.type.value
    return DataError(f"field {field.full_name} of the Protobuf schema is of another type than {kind}")


def _same(value: Any) -> Any:
    return value


def _not_null(value: Any) -> Any:
    if value is None:
        raise DataError("Protobuf has no nulls in lists and maps")
    return value


def _checked_items(values: Any) -> Any:
    for value in values:
        _not_null(value)
    return values
