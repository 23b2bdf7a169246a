"""Protobuf definitions of Connect schemas, as Confluent's ProtobufData makes them.

    INT8, INT16     int32 with `connect.type` in the field's confluent.field_meta
    Decimal, Date, Time, Timestamp     confluent.type.Decimal, google.type.Date, .TimeOfDay, a Timestamp
    MAP             a repeated message with the fields key and value, its name ends with Entry
    STRUCT          a message; without a name ConnectDefault1, ConnectDefault2 ...
    a struct io.confluent.connect.protobuf.Union.NAME     oneof NAME

A schema that is no struct is the wrapper of its type, of google/protobuf/wrappers.proto.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote_plus

from google.protobuf import descriptor_pb2

from connect.api.schema import DECIMAL, Schema, Type
from connect.converters.protobuf.files import known_file
from connect.converters.protobuf.names import (
    CONNECT_TYPE,
    LOGICAL_TYPES,
    META_FILE,
    PRECISION,
    TAG,
    TYPE,
    UNION_PREFIX,
    WRAPPERS,
    WRAPPERS_FILE,
    Options,
    is_union,
)
from connect.converters.protobuf.options import set_field_params
from connect.converters.protobuf.parser import SCALARS
from connect.errors import DataError

_Field = descriptor_pb2.FieldDescriptorProto
_SCALAR_OF = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def protobuf_of(schema: Schema, options: Options) -> tuple[Any, str]:
    """Return the FileDescriptorProto of a schema, and its message's full name.

    Raises DataError for a schema that Protobuf cannot express, as a list of lists.
    """
    if schema.type in _SCALAR_OF and schema.name not in LOGICAL_TYPES:
        wrapper = WRAPPERS[_SCALAR_OF[schema.type]]
        return known_file(WRAPPERS_FILE), wrapper
    if schema.type is not Type.STRUCT:
        raise DataError(
            f"Protobuf has no message for {schema.name or schema.type.value}: put it into a struct"
        )
    return _Definitions(options).file_of(schema)


class _Definitions:
    """The messages of one file."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._file: Any = descriptor_pb2.FileDescriptorProto(name="schema.proto", syntax="proto3")
        self._unnamed = 0
        self._structs: dict[tuple[int, str], Schema] = {}

    def file_of(self, schema: Schema) -> tuple[Any, str]:
        """Return the file of a struct's schema, and the full name of its message."""
        package, _, name = self._full_name(schema).rpartition(".")
        name = self._checked(name)
        if package:
            self._file.package = package
        self._message(self._file.message_type.add(name=name), schema)
        return self._file, f"{package}.{name}" if package else name

    def _full_name(self, schema: Schema) -> str:
        if schema.name is not None:
            return schema.name
        self._unnamed += 1
        return f"ConnectDefault{self._unnamed}"

    def _unqualified(self, schema: Schema) -> str:
        return self._checked(self._full_name(schema).rpartition(".")[2])

    def _checked(self, name: str) -> str:
        """Return a name for Protobuf. Raises DataError if it is none, and is not to be changed."""
        if self._options.scrub_invalid_names:
            return scrubbed(name)
        if not _NAME.fullmatch(name):
            raise DataError(
                f"{name!r} is no name in Protobuf, which has letters, digits and _; scrub.invalid.names=true "
                "replaces the others"
            )
        return name

    def _message(self, message: Any, schema: Schema) -> None:
        tag = 0
        used: set[int] = set()
        optionals = []
        for name, of in schema.fields.items():
            if is_union(of):
                self._oneof(message, of, used)
                continue
            if TAG in of.parameters:
                number = _tag(name, of)
            else:
                tag = _next_free(tag, used, schema)
                number = tag
            used.add(number)
            field = self._field(message, self._checked(name), of, number)
            if field.proto3_optional:
                optionals.append(field)
        for field in optionals:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _oneof(self, message: Any, schema: Schema, used: set[int]) -> None:
        name = (schema.name or "").removeprefix(UNION_PREFIX).rpartition(".")[2]
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._checked(name))
        for field_name, of in schema.fields.items():
            number = _tag(field_name, of) if TAG in of.parameters else _next_free(0, used, schema)
            used.add(number)
            field = self._field(message, self._checked(field_name), of, number)
            if field.label == _Field.LABEL_REPEATED:
                raise DataError(
                    f"field {field_name} of a oneof is a list or map, which Protobuf does not allow"
                )
            field.ClearField("proto3_optional")
            field.oneof_index = index

    def _field(self, message: Any, name: str, schema: Schema, number: int) -> Any:
        field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
        if schema.type is Type.ARRAY:
            field.label = _Field.LABEL_REPEATED
            if schema.values is None or schema.values.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"field {name} is a list of lists or maps, or of nothing; Protobuf has none")
            schema = schema.values
        elif schema.type is Type.MAP:
            field.label = _Field.LABEL_REPEATED
        elif self._options.optional_for_nullables and schema.optional:
            field.proto3_optional = True
        self._set_type(message, field, schema)
        return field

    def _set_type(self, message: Any, field: Any, schema: Schema) -> None:
        if schema.name in LOGICAL_TYPES:
            self._imported(field, *LOGICAL_TYPES[schema.name or ""])
            if schema.name == DECIMAL:
                words = (("precision", PRECISION), ("scale", "scale"))
                params = {word: schema.parameters[key] for word, key in words if key in schema.parameters}
                self._set_params(field, params)
        elif schema.type is Type.STRUCT:
            self._struct(message, field, schema)
        elif schema.type is Type.MAP:
            self._map(message, field, schema)
        elif (enum := self._options.enum_parameter(schema)) is not None:
            self._enum(message, field, schema, enum)
        else:
            scalar = schema.parameters.get(TYPE, _SCALAR_OF[schema.type])
            if scalar not in SCALARS:
                raise DataError(f"{TYPE} of field {field.name} is {scalar}, which is no type of Protobuf")
            if schema.optional and self._options.wrapper_for_nullables:
                self._imported(field, WRAPPERS_FILE, WRAPPERS[scalar])
            else:
                field.type = SCALARS[scalar]
            if schema.type in (Type.INT8, Type.INT16):
                self._set_params(field, {CONNECT_TYPE: schema.type.value})

    def _imported(self, field: Any, file: str, full_name: str) -> None:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{full_name}"
        self._import(file)

    def _import(self, file: str) -> None:
        if file not in self._file.dependency:
            self._file.dependency.append(file)

    def _set_params(self, field: Any, params: dict[str, str]) -> None:
        if params:
            self._import(META_FILE)
            set_field_params(field.options, params)

    def _struct(self, message: Any, field: Any, schema: Schema) -> None:
        name = self._unqualified(schema)
        if name == field.name:
            name += "Message"
        field.type, field.type_name = _Field.TYPE_MESSAGE, name
        key = (id(message), name)
        defined = self._structs.setdefault(key, schema)
        if any(each.name == name for each in message.nested_type):
            if defined.fields != schema.fields:
                raise DataError(f"two structs have the name {schema.name} and differ")
            return
        self._message(message.nested_type.add(name=name), schema)

    def _map(self, message: Any, field: Any, schema: Schema) -> None:
        if schema.keys is None or schema.values is None:
            raise DataError(f"field {field.name} is a map without the schemas of its keys and values")
        name = f"{_camel(self._unqualified(schema))}Entry"
        entry = message.nested_type.add(name=name)
        field.type, field.type_name = _Field.TYPE_MESSAGE, name
        for number, (part, of) in enumerate((("key", schema.keys), ("value", schema.values)), 1):
            added = self._field(entry, part, of, number)
            if added.label == _Field.LABEL_REPEATED:
                raise DataError(f"field {field.name} is a map of lists or maps; put them into structs")
            added.ClearField("proto3_optional")

    def _enum(self, message: Any, field: Any, schema: Schema, parameter: str) -> None:
        name = self._checked((schema.name or schema.parameters[parameter]).rpartition(".")[2])
        field.type, field.type_name = _Field.TYPE_ENUM, name
        if any(each.name == name for each in message.enum_type):
            return
        enum = message.enum_type.add(name=name)
        prefix = parameter + "."
        try:
            values = {k[len(prefix) :]: int(v) for k, v in schema.parameters.items() if k.startswith(prefix)}
        except ValueError as e:
            raise DataError(f"the numbers of enum {name} are not all whole numbers: {e}") from e
        if len(set(values.values())) < len(values):
            enum.options.allow_alias = True
        for symbol, number in values.items():
            enum.value.add(name=symbol, number=number)


def _tag(name: str, schema: Schema) -> int:
    text = schema.parameters[TAG]
    if not text.isdecimal() or not 0 < int(text) < 1 << 29:
        raise DataError(f"{TAG} of field {name} is {text}, which is no field number of Protobuf")
    return int(text)


def _next_free(number: int, used: set[int], schema: Schema) -> int:
    """Return the next field number that no field has, or is to have by its tag."""
    tags = {of.parameters.get(TAG) for of in schema.fields.values()}
    number += 1
    while number in used or str(number) in tags:
        number += 1
    return number


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) if "_" in name else name


def scrubbed(name: str) -> str:
    """Return a name with `_` for what Protobuf does not allow, as Confluent's converter writes it."""
    if not name or (_NAME.fullmatch(name) and name[0] != "_"):
        return name
    encoded = quote_plus(name, safe="*-._")
    if encoded[0].isdigit() or encoded[0] == "_":
        encoded = "x" + encoded
    return re.sub("[^A-Za-z0-9_]", "_", encoded)
