"""Options in .proto text: Protobuf's own, and Confluent's `field_meta` with parameters for Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from connect.errors import DataError

FIELD_META = "(confluent.field_meta)"
_FIELD_META_NUMBER = 1088
_Field = descriptor_pb2.FieldDescriptorProto


def set_option(options: Any, path: Sequence[str], constant: str, *, in_braces: bool) -> None:
    """Set an option by the parts of its name. Extensions other than `confluent.field_meta` are left out.

    Raises DataError for a value that is none of the option's.
    """
    first, *rest = path
    try:
        if first.replace("(.", "(") == FIELD_META:
            holder = _holder()()
            _merge(holder.field_meta, rest, constant, in_braces)
            options.MergeFromString(holder.SerializeToString())
        elif first in options.DESCRIPTOR.fields_by_name:
            _merge(options, path, constant, in_braces)
    except text_format.ParseError as e:
        raise DataError(f"option {'.'.join(path)} of the .proto text is not understood: {e}") from e


def _merge(message: Any, path: Sequence[str], constant: str, in_braces: bool) -> None:
    """Merge a value into a message at a path of field names."""
    if not path:
        text = constant
    else:
        text = f"{path[-1]} {{ {constant} }}" if in_braces else f"{path[-1]}: {constant}"
        for part in reversed(path[:-1]):
            text = f"{part} {{ {text} }}"
    text_format.Merge(text, message, allow_unknown_field=True)


def field_params(options: Any) -> Mapping[str, str]:
    """Return the parameters of a field's `confluent.field_meta`."""
    data = options.SerializeToString()
    return dict(_holder().FromString(data).field_meta.params) if data else {}


def set_field_params(options: Any, params: Mapping[str, str]) -> None:
    """Set the parameters of a field's `confluent.field_meta`."""
    holder = _holder()()
    holder.field_meta.params.update(params)
    options.MergeFromString(holder.SerializeToString())


@cache
def _holder() -> Any:
    """Return the class of a message with `field_meta` at the number that it has in FieldOptions."""
    file = descriptor_pb2.FileDescriptorProto(name="holder.proto", syntax="proto3")
    meta = file.message_type.add(name="Meta")
    meta.field.add(name="doc", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    meta.field.add(name="params", number=2, label=_Field.LABEL_REPEATED, type_name="ParamsEntry")
    meta.field.add(name="tags", number=3, label=_Field.LABEL_REPEATED, type=_Field.TYPE_STRING)
    entry = meta.nested_type.add(name="ParamsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    holder = file.message_type.add(name="Holder")
    holder.field.add(
        name="field_meta", number=_FIELD_META_NUMBER, label=_Field.LABEL_OPTIONAL, type_name="Meta"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Holder"))
