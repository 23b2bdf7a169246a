"""ReplaceField: selects and renames fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.api.schema import Schema
from connect.config import setting
from connect.errors import DataError
from connect.transforms.fields import (
    FillConfig,
    as_map,
    check_struct,
    distinct,
    has_defaults,
    struct_copy,
    struct_of,
)
from connect.transforms.parts import Edit, OnKey, OnValue, PartTransform, Plan

_PURPOSE = "field replacement"


def _check_renames(mappings: Sequence[str]) -> None:
    for mapping in mappings:
        if len(mapping.split(":")) != 2 or mapping.endswith(":"):
            raise ValueError(f"must be a list of old:new, and has {mapping!r}")


class ReplaceFieldConfig(FillConfig):
    """Leaves out fields, or all but some, and renames fields."""

    exclude: list[str] = setting("Names of fields to leave out.", default=[], check=distinct)
    include: list[str] = setting(
        "Names of the only fields that stay; `exclude` goes first.", default=[], check=distinct
    )
    renames: list[str] = setting("Renames of fields, each old:new.", default=[], check=_check_renames)


class ReplaceField(PartTransform[ReplaceFieldConfig]):
    """The transform ReplaceField, for `$Key` and `$Value`."""

    CONFIG = ReplaceFieldConfig

    def prepare(self) -> None:
        """Make sets of the names."""
        self._exclude = frozenset(self.config.exclude)
        self._include = frozenset(self.config.include)
        pairs = (mapping.partition(":") for mapping in self.config.renames)
        self._renames = {old: new for old, _, new in pairs}

    def plain(self, value: Any, record: Any) -> Any:
        """Return the map with its remaining fields under their new names."""
        return self._selected(as_map(value, _PURPOSE).copy())

    def _selected(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Leave out and rename fields in a dict, and return it."""
        exclude, include, renames = self._exclude, self._include, self._renames
        if include:
            fields = {name: item for name, item in fields.items() if name in include}
        for name in exclude:
            fields.pop(name, None)
        if renames:
            moved = [(new, fields.pop(old)) for old, new in renames.items() if old in fields]
            fields.update(moved)
        return fields

    def plain_edit(self) -> Edit | None:
        """Return the edit of maps, which leaves out and renames fields; None where only some are kept."""
        exclude, renames = self._exclude, self._renames
        if self._include or renames.keys() & renames.values():
            return None

        def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
            for name in exclude:
                for value in values:
                    value.pop(name, None)
            for old, new in renames.items():
                for value in values:
                    if old in value:
                        value[new] = value.pop(old)

        return edit

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError if two fields would get one name."""
        check_struct(schema, _PURPOSE)
        exclude, include = self._exclude, self._include
        names = [n for n in schema.fields if n not in exclude and (not include or n in include)]
        targets = [self._renames.get(n, n) for n in names]
        twice = sorted({t for t in targets if targets.count(t) > 1})
        if twice:
            raise DataError(f"renames give two fields one name: {', '.join(twice)}")
        remaining = {n: schema.fields[n] for n in names}
        fields = dict(zip(targets, remaining.values(), strict=True))
        copy = struct_copy(struct_of(schema, remaining), self.config.replace_null_with_default, _PURPOSE)
        select = self._selected
        edit = None if has_defaults(schema) else self.plain_edit()
        return Plan(schema, struct_of(schema, fields), lambda value, record: select(copy(value)), edit)


class ReplaceFieldKey(ReplaceField, OnKey[ReplaceFieldConfig]):
    """`ReplaceField$Key`."""


class ReplaceFieldValue(ReplaceField, OnValue[ReplaceFieldConfig]):
    """`ReplaceField$Value`."""
