"""ExtractField: replaces a key or value by one of its fields."""

from __future__ import annotations

from typing import Any

from connect.api.schema import Schema
from connect.config import setting
from connect.errors import DataError
from connect.transforms.field_path import FieldPath, PathConfig
from connect.transforms.fields import as_map, as_struct
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan

_PURPOSE = "field extraction"


class ExtractFieldConfig(PathConfig):
    """Replaces the key or value by one of its fields. Null stays null."""

    field: str = setting("The name or path of the field.")


class ExtractField(PartTransform[ExtractFieldConfig]):
    """The transform ExtractField, for `$Key` and `$Value`."""

    CONFIG = ExtractFieldConfig
    passes_null = False

    def prepare(self) -> None:
        """Parse the path."""
        self._path = FieldPath(self.config.field, self.config.field_syntax_version, "field")

    def plain(self, value: Any, record: Any) -> Any:
        """Return the field of a map, None if it has no such field."""
        return None if value is None else self._path.of_map(as_map(value, _PURPOSE))

    def planned(self, schema: Schema) -> Plan:
        """Return the plan with the field's schema. Raises DataError if there is no such field."""
        path, fill = self._path, self.config.replace_null_with_default
        extracted = path.schema(schema)
        if extracted is None:
            raise DataError(f"there is no field {path.text} in the schema")

        def change(value: Any, record: Any) -> Any:
            return None if value is None else path.of_struct(as_struct(value, _PURPOSE), schema, fill)

        return Plan(schema, extracted, change)


class ExtractFieldKey(ExtractField, OnKey[ExtractFieldConfig]):
    """`ExtractField$Key`."""


class ExtractFieldValue(ExtractField, OnValue[ExtractFieldConfig]):
    """`ExtractField$Value`."""
