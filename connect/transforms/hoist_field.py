"""HoistField: wraps a key or value in a struct or map with one field."""

from __future__ import annotations

from typing import Any

from connect.api import schema as s
from connect.api.schema import Schema
from connect.config import Config, setting
from connect.errors import DataError
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan


class HoistFieldConfig(Config):
    """Wraps the key or value in a struct (with schema) or map (without) that has one field."""

    field: str = setting("The name of the field that gets the key or value.")


class HoistField(PartTransform[HoistFieldConfig]):
    """The transform HoistField, for `$Key` and `$Value`."""

    CONFIG = HoistFieldConfig
    passes_null = False

    def plain(self, value: Any, record: Any) -> Any:
        """Return a map with the value."""
        return {self.config.field: value}

    def planned(self, schema: Schema) -> Plan:
        """Return the plan: a struct with a field of the schema."""
        name = self.config.field

        def change(value: Any, record: Any) -> Any:
            if value is None and not schema.optional:
                raise DataError(f"null cannot be field {name}: its schema is not optional")
            return {name: value}

        return Plan(schema, s.struct({name: schema}), change)


class HoistFieldKey(HoistField, OnKey[HoistFieldConfig]):
    """`HoistField$Key`."""


class HoistFieldValue(HoistField, OnValue[HoistFieldConfig]):
    """`HoistField$Value`."""
