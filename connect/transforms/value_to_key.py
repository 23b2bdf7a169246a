"""ValueToKey: makes a key of fields of the value."""

from __future__ import annotations

from typing import Any

from connect.api import schema as s
from connect.api.schema import Schema
from connect.api.transform import R
from connect.config import setting
from connect.errors import DataError
from connect.transforms.field_path import FieldPath, PathConfig
from connect.transforms.fields import as_map, as_struct, distinct
from connect.transforms.parts import PartTransform, Plan

_PURPOSE = "copying fields from value to key"


class ValueToKeyConfig(PathConfig):
    """Replaces the key by a struct or map of some of the value's fields."""

    fields: list[str] = setting("Names or paths of the fields.", importance="HIGH", check=distinct)


class ValueToKey(PartTransform[ValueToKeyConfig]):
    """The transform ValueToKey. Its plans turn values of a schema into keys."""

    CONFIG = ValueToKeyConfig

    def prepare(self) -> None:
        """Parse the paths."""
        version = self.config.field_syntax_version
        self._paths = [FieldPath(text, version, "fields") for text in self.config.fields]

    def change(self, record: R) -> R:
        """Replace the key of the record, and return the record."""
        value, schema = record.value, record.value_schema
        if schema is None:
            record.key = self.plain(value, record)
            record.key_schema = None
        else:
            plan = self._plans.get(id(schema)) or self.plan(schema)
            record.key = plan.change(value, record)
            record.key_schema = plan.schema
        return record

    def plain(self, value: Any, record: Any) -> Any:
        """Return the key for a value without schema; a field that is not there is null."""
        fields = as_map(value, _PURPOSE)
        return {path.text: path.of_map(fields) for path in self._paths}

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError if it lacks a field."""
        fill = self.config.replace_null_with_default
        fields = [(path, path.schema(schema)) for path in self._paths]
        missing = [path.text for path, field in fields if field is None]
        if missing:
            raise DataError(f"there is no field {', '.join(missing)} in the value's schema")
        key_fields = {path.text: field for path, field in fields if field is not None}

        def change(value: Any, record: Any) -> Any:
            as_struct(value, _PURPOSE)
            key = {path.text: path.of_struct(value, schema, fill) for path, _ in fields}
            if None in key.values():
                _check_nulls(key, key_fields)
            return key

        return Plan(schema, s.struct(key_fields), change)


def _check_nulls(key: dict[str, Any], fields: dict[str, Schema]) -> None:
    """Raise DataError if a field is null and its schema is not optional."""
    for name, field in fields.items():
        if key[name] is None and not field.optional:
            raise DataError(f"field {name} is null, and its schema is not optional")
