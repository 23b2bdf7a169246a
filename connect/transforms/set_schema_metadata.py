"""SetSchemaMetadata: sets the name and version of a schema."""

from __future__ import annotations

import dataclasses
from typing import Any

from connect.api.schema import Schema, Type
from connect.config import setting
from connect.errors import ConfigError, DataError
from connect.transforms.fields import FillConfig, struct_copy
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan


class SetSchemaMetadataConfig(FillConfig):
    """Sets the name and version of the key's or value's schema."""

    schema_name: str | None = setting("The schema's name.", default=None, importance="HIGH")
    schema_version: int | None = setting("The schema's version.", default=None, importance="HIGH")

    def check(self) -> None:
        """Raise ConfigError unless a name or version is there."""
        if self.schema_name is None and self.schema_version is None:
            raise ConfigError("schema.name", "", "set schema.name, schema.version or both")


class SetSchemaMetadata(PartTransform[SetSchemaMetadataConfig]):
    """The transform SetSchemaMetadata, for `$Key` and `$Value`."""

    CONFIG = SetSchemaMetadataConfig
    passes_null = False

    def plain(self, value: Any, record: Any) -> Any:
        """Return null. Raises DataError for any other value, since there is no schema to update."""
        if value is not None:
            raise DataError("updating schema metadata needs a schema, and the record has none")
        return None

    def planned(self, schema: Schema) -> Plan:
        """Return the plan: the same values with the schema's name and version changed."""
        config = self.config
        changes: dict[str, Any] = {}
        if config.schema_name is not None:
            changes["name"] = config.schema_name
        if config.schema_version is not None:
            changes["version"] = config.schema_version
        updated = dataclasses.replace(schema, **changes)
        if schema.type is not Type.STRUCT:
            return Plan(schema, updated, lambda value, record: value)
        copy = struct_copy(schema, config.replace_null_with_default, "updating schema metadata")
        return Plan(schema, updated, lambda value, record: None if value is None else copy(value))


class SetSchemaMetadataKey(SetSchemaMetadata, OnKey[SetSchemaMetadataConfig]):
    """`SetSchemaMetadata$Key`."""


class SetSchemaMetadataValue(SetSchemaMetadata, OnValue[SetSchemaMetadataConfig]):
    """`SetSchemaMetadata$Value`."""
