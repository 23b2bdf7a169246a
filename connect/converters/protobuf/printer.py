""".proto text of FileDescriptorProtos, as a schema registry keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2

from connect.converters.protobuf.options import field_params
from connect.converters.protobuf.parser import SCALARS

_Field = descriptor_pb2.FieldDescriptorProto
_SCALAR_NAMES = {number: name for name, number in SCALARS.items()}


def proto_text(file: Any) -> str:
    """Return the .proto text of a file of proto3 with messages, enums and oneofs."""
    lines = [f'syntax = "{file.syntax or "proto2"}";']
    if file.package:
        lines.append(f"package {file.package};")
    if file.dependency:
        lines += ["", *(f'import "{name}";' for name in file.dependency)]
    # A relative name is looked up in the file's own package first, which may have a part of that name.
    rooted = bool({"confluent", "google"} & set(file.package.split(".")[1:]))
    for message in file.message_type:
        lines += ["", *_message(message, rooted)]
    return "\n".join(lines) + "\n"


def _message(message: Any, rooted: bool) -> Iterator[str]:
    yield f"message {message.name} {{"
    oneofs: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield from _indented(_field(field, rooted))
        elif field.oneof_index not in oneofs:
            oneofs.add(field.oneof_index)
            yield f"  oneof {message.oneof_decl[field.oneof_index].name} {{"
            for each in message.field:
                if each.HasField("oneof_index") and each.oneof_index == field.oneof_index:
                    yield from _indented(_indented(_field(each, rooted)))
            yield "  }"
    for nested in message.nested_type:
        yield ""
        yield from _indented(_message(nested, rooted))
    for enum in message.enum_type:
        yield ""
        yield from _indented(_enum(enum))
    yield "}"


def _field(field: Any, rooted: bool) -> Iterator[str]:
    label = ""
    if field.label == _Field.LABEL_REPEATED:
        label = "repeated "
    elif field.proto3_optional:
        label = "optional "
    type_name = field.type_name if rooted else field.type_name.removeprefix(".")
    start = f"{label}{type_name or _SCALAR_NAMES[field.type]} {field.name} = {field.number}"
    params = field_params(field.options)
    if not params:
        yield f"{start};"
        return
    yield f"{start} [(confluent.field_meta) = {{"
    yield "  params: ["
    for number, (key, value) in enumerate(sorted(params.items()), 1):
        comma = "," if number < len(params) else ""
        yield f"    {{ key: {json.dumps(key)}, value: {json.dumps(value)} }}{comma}"
    yield "  ]"
    yield "}];"


def _enum(enum: Any) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    if enum.options.allow_alias:
        yield "  option allow_alias = true;"
    for value in enum.value:
        yield f"  {value.name} = {value.number};"
    yield "}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)
