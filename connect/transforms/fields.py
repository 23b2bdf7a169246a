"""Fields of maps and structs: common settings, checks and copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect.api.schema import Schema, Type
from connect.config import Config, setting
from connect.errors import DataError

StructCopy = Callable[[Any], dict[str, Any]]


class FillConfig(Config):
    """The setting of transforms that read fields with defaults (KIP-1040)."""

    replace_null_with_default: bool = setting(
        "Take a field's default where the field is null and its schema has a default.", default=True
    )


def distinct(items: Sequence[str]) -> None:
    """Raise ValueError if an item is there twice: Kafka's check of lists of fields."""
    if len(set(items)) < len(items):
        raise ValueError("must not have an item twice")


def non_empty(text: str) -> None:
    """Raise ValueError if the text is empty."""
    if not text:
        raise ValueError("must not be empty")


def as_map(value: Any, purpose: str) -> dict[str, Any]:
    """Return the value if it is a map. Raises DataError otherwise."""
    if not isinstance(value, dict):
        raise DataError(f"{purpose} needs a map where there is no schema, and got {type(value).__name__}")
    return value


def as_struct(value: Any, purpose: str) -> dict[str, Any]:
    """Return the value if it can be a struct. Raises DataError otherwise."""
    if not isinstance(value, dict):
        raise DataError(f"{purpose} needs a struct, and got {type(value).__name__}")
    return value


def check_struct(schema: Schema, purpose: str) -> None:
    """Raise DataError unless the schema is that of a struct."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"{purpose} needs a struct, and the schema is of type {schema.type.value}")


def struct_copy(schema: Schema, fill: bool, purpose: str) -> StructCopy:
    """Return a function that copies structs of a schema.

    With `fill`, a null field gets the default of its schema. Without, null in a field that is not optional
    raises DataError. So does a value that is no struct. Raises DataError if the schema is of another type.
    """
    check_struct(schema, purpose)
    defaults = tuple(
        (name, field.default) for name, field in schema.fields.items() if field.default is not None
    )
    required = tuple(name for name, _ in defaults if not schema.fields[name].optional)

    def copy(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            as_struct(value, purpose)
        return value.copy()  # type: ignore[no-any-return]

    def copy_filled(value: Any) -> dict[str, Any]:
        copied = as_struct(value, purpose).copy()
        for name, default in defaults:
            if copied.get(name) is None:
                copied[name] = default
        return copied

    def copy_checked(value: Any) -> dict[str, Any]:
        copied = as_struct(value, purpose).copy()
        for name in required:
            if copied.get(name) is None:
                raise DataError(f"field {name} is null, and its schema is not optional")
        return copied

    if not defaults:
        return copy
    return copy_filled if fill else copy_checked


def has_defaults(schema: Schema) -> bool:
    """Return True if any field of a struct's schema has a default: copying then looks at each field."""
    return any(field.default is not None for field in schema.fields.values())


def field_value(value: Mapping[str, Any], name: str, schema: Schema, fill: bool) -> Any:
    """Return the value of a struct's field; with `fill`, its default instead of null."""
    result = value.get(name)
    return schema.default if fill and result is None else result


def struct_of(source: Schema, fields: Mapping[str, Schema], *, optional: bool = False) -> Schema:
    """Return a struct schema with these fields and with the name, version, doc and parameters of `source`."""
    return Schema(
        type=Type.STRUCT,
        fields=fields,
        optional=optional,
        name=source.name,
        version=source.version,
        doc=source.doc,
        parameters=source.parameters,
    )
