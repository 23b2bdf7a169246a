"""Cast: converts fields, or the whole key or value, to another type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from connect.api.schema import Schema, Type
from connect.config import setting
from connect.transforms.casts import TARGETS, caster
from connect.transforms.fields import FillConfig, as_map, check_struct, has_defaults, struct_copy
from connect.transforms.parts import Edit, OnKey, OnValue, PartTransform, Plan

_PURPOSE = "casting types"


def _parse(mappings: Sequence[str]) -> dict[str | None, Type]:
    """Return the types by field; None is the whole value. Raises ValueError."""
    types: dict[str | None, Type] = {}
    for mapping in mappings:
        name, colon, text = mapping.rstrip(":").rpartition(":")
        if ":" in name or text.strip().upper() not in TARGETS:
            allowed = ", ".join(TARGETS).lower()
            raise ValueError(f"must be one type, or a list of field:type, of {allowed}; it has {mapping!r}")
        types[name.strip() if colon else None] = TARGETS[text.strip().upper()]
    if None in types and len(mappings) > 1:
        raise ValueError("must not have another item beside the type of the whole value")
    return types


def _check(mappings: Sequence[str]) -> None:
    _parse(mappings)


class CastConfig(FillConfig):
    """Casts fields, or the whole key or value, as Java casts and parses. Null stays null."""

    spec: list[str] = setting(
        "field:type for fields, or a type for the whole key or value. Types: int8, int16, int32, int64, "
        "float32, float64, boolean, string.",
        importance="HIGH",
        check=_check,
    )


class Cast(PartTransform[CastConfig]):
    """The transform Cast, for `$Key` and `$Value`."""

    CONFIG = CastConfig

    def prepare(self) -> None:
        """Make the casts of values without schema."""
        self._types = _parse(self.config.spec)
        self._whole = self._types.get(None)
        self._casts = [(name, caster(kind, None)) for name, kind in self._types.items()]

    def plain(self, value: Any, record: Any) -> Any:
        """Return the value, or the map with the fields, cast; a field that is not there becomes null."""
        if self._whole is not None:
            return self._casts[0][1](value)
        changed: dict[Any, Any] = as_map(value, _PURPOSE).copy()
        for name, cast in self._casts:
            changed[name] = cast(changed.get(name))
        return changed

    def plain_edit(self) -> Edit | None:
        """Return the edit of maps, which casts the fields; None if the whole value is cast."""
        return None if self._whole is not None else _edit(self._casts)

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError if a field of its type cannot be cast."""
        if self._whole is not None:
            cast = caster(self._whole, schema)
            return Plan(schema, _cast_schema(schema, schema, self._whole), lambda value, record: cast(value))
        check_struct(schema, _PURPOSE)
        fields = dict(schema.fields)
        casts = []
        for name, kind in self._types.items():
            if name is not None and name in fields:
                field = fields[name]
                casts.append((name, caster(kind, field)))
                fields[name] = _cast_schema(Schema(type=kind), field, kind)
        copy = struct_copy(schema, self.config.replace_null_with_default, _PURPOSE)

        def change(value: Any, record: Any) -> Any:
            changed = copy(value)
            for name, cast in casts:
                changed[name] = cast(changed.get(name))
            return changed

        edit = None if has_defaults(schema) else _edit(casts)
        return Plan(schema, _of_struct(schema, fields, change), change, edit)


def _edit(casts: Sequence[tuple[Any, Callable[[Any], Any]]]) -> Edit:
    """Return the edit that casts the fields of these names."""

    def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
        for name, cast in casts:
            for value in values:
                value[name] = cast(value.get(name))

    return edit


def _cast_schema(basics: Schema, source: Schema, kind: Type) -> Schema:
    """Return a schema of type `kind` with the names of `basics`, and optional and default of `source`."""
    return Schema(
        type=kind,
        optional=source.optional,
        default=None if source.default is None else caster(kind, source)(source.default),
        name=basics.name,
        version=basics.version,
        doc=basics.doc,
        parameters=basics.parameters,
    )


def _of_struct(schema: Schema, fields: dict[str, Schema], change: Any) -> Schema:
    """Return the schema with its fields replaced, and its default changed."""
    default = None if schema.default is None else change(schema.default, None)
    return replace(schema, fields=fields, default=default)


class CastKey(Cast, OnKey[CastConfig]):
    """`Cast$Key`."""


class CastValue(Cast, OnValue[CastConfig]):
    """`Cast$Value`."""
