"""Flatten: makes one level of nested maps or structs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from connect.api.schema import Schema, Type
from connect.config import Config, setting
from connect.errors import DataError
from connect.transforms.fields import as_map, as_struct, check_struct, struct_of
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan

_PURPOSE = "flattening"
_LEAVES = (int, float, str, bool, bytes, list, tuple, bytearray, memoryview)
_Flatten = Callable[[Any, dict[str, Any]], None]


class FlattenConfig(Config):
    """Makes one level of nested maps or structs; arrays stay as they are. Null stays null."""

    delimiter: str = setting("The text between a parent's name and a field's.", default=".")


class Flatten(PartTransform[FlattenConfig]):
    """The transform Flatten, for `$Key` and `$Value`."""

    CONFIG = FlattenConfig

    def plain(self, value: Any, record: Any) -> Any:
        """Return a map of one level. Raises DataError for values of types that Connect does not know."""
        flat: dict[str, Any] = {}
        self._flatten_map(as_map(value, _PURPOSE), "", flat)
        return flat

    def _flatten_map(self, source: dict[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for name, item in source.items():
            path = prefix + name
            if isinstance(item, dict):
                self._flatten_map(item, path + self.config.delimiter, flat)
            elif item is None or isinstance(item, _LEAVES):
                flat[path] = item
            else:
                raise DataError(f"flattening without schema does not support {type(item).__name__} ({path})")

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError for maps, and for fields that would get one name."""
        check_struct(schema, _PURPOSE)
        fields: dict[str, Schema] = {}
        for path, field in self._flat_fields(schema, "", schema.optional, schema.default):
            if path in fields:
                raise DataError(f"flattening gives two fields one name: {path}")
            fields[path] = field
        flatten = self._flattener(schema, "")

        def change(value: Any, record: Any) -> Any:
            flat: dict[str, Any] = {}
            flatten(as_struct(value, _PURPOSE), flat)
            return flat

        return Plan(schema, struct_of(schema, fields), change)

    def _flat_fields(
        self, schema: Schema, prefix: str, optional: bool, default: Any
    ) -> Iterator[tuple[str, Schema]]:
        """Yield the flat fields of a struct that has this default, each with its path."""
        for name, field in schema.fields.items():
            path = prefix + name
            field_default = field.default
            if field_default is None and default is not None:
                field_default = default.get(name)
            is_optional = optional or field.optional
            if field.type is Type.STRUCT:
                yield from self._flat_fields(field, path + self.config.delimiter, is_optional, field_default)
            elif field.type is Type.MAP:
                raise DataError(f"flattening with schema does not support maps (field {path})")
            else:
                yield path, dataclasses.replace(field, optional=is_optional, default=field_default)

    def _flattener(self, schema: Schema, prefix: str) -> _Flatten:
        """Return a function that adds the fields of a struct to a flat one."""
        leaves = []
        structs = []
        for name, field in schema.fields.items():
            path = prefix + name
            if field.type is Type.STRUCT:
                structs.append((name, self._flattener(field, path + self.config.delimiter)))
            else:
                leaves.append((path, name, field.default))

        def flatten(source: dict[str, Any], flat: dict[str, Any]) -> None:
            for path, name, default in leaves:
                item = source.get(name)
                flat[path] = default if item is None else item
            for name, flatten_field in structs:
                item = source.get(name)
                if item is not None:
                    flatten_field(item, flat)

        return flatten


class FlattenKey(Flatten, OnKey[FlattenConfig]):
    """`Flatten$Key`."""


class FlattenValue(Flatten, OnValue[FlattenConfig]):
    """`Flatten$Value`."""
