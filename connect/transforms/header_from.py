"""HeaderFrom: moves or copies fields into headers."""

from __future__ import annotations

from typing import Any, Literal

from connect.api.schema import Schema
from connect.config import setting
from connect.errors import ConfigError, DataError
from connect.transforms.fields import FillConfig, as_map, as_struct, field_value, struct_copy, struct_of
from connect.transforms.parts import OnKey, OnValue, PartTransform, Plan

_PURPOSE = "header from a field"


class HeaderFromConfig(FillConfig):
    """Moves or copies fields of the key or value into headers."""

    fields: list[str] = setting("Names of the fields.", importance="HIGH")
    headers: list[str] = setting("Names of the headers, in the order of `fields`.", importance="HIGH")
    operation: Literal["move", "copy"] = setting(
        "`move` removes the fields from the key or value, `copy` leaves them there.", importance="HIGH"
    )

    def check(self) -> None:
        """Raise ConfigError unless there are as many headers as fields."""
        if len(self.headers) != len(self.fields):
            raise ConfigError("headers", ",".join(self.headers), "must have as many items as fields")


class HeaderFrom(PartTransform[HeaderFromConfig]):
    """The transform HeaderFrom, for `$Key` and `$Value`."""

    CONFIG = HeaderFromConfig
    passes_null = False

    def prepare(self) -> None:
        """Pair the fields with their headers."""
        self._pairs = list(zip(self.config.fields, self.config.headers, strict=True))
        self._moves = self.config.operation == "move"

    def plain(self, value: Any, record: Any) -> Any:
        """Return the map, and add the headers to `record`."""
        source = as_map(value, _PURPOSE)
        record.headers = [
            *record.headers,
            *((header, None, source.get(name)) for name, header in self._pairs),
        ]
        if not self._moves:
            return value
        return {name: item for name, item in source.items() if name not in self.config.fields}

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema; its `change` adds the headers to the record."""
        fill, pairs, moves = self.config.replace_null_with_default, self._pairs, self._moves
        missing = [name for name, _ in pairs if name not in schema.fields]
        if missing:
            raise DataError(f"there is no field {', '.join(missing)} in the schema")
        rest = {name: field for name, field in schema.fields.items() if name not in self.config.fields}
        updated = struct_of(schema, rest) if moves else schema
        copy = struct_copy(updated, fill, _PURPOSE)

        def change(value: Any, record: Any) -> Any:
            source = as_struct(value, _PURPOSE)
            headers = []
            for name, header in pairs:
                field = schema.fields[name]
                item = field_value(source, name, field, fill)
                if item is None and not field.optional:
                    raise DataError(f"field {name} is null, and its schema is not optional")
                headers.append((header, field, item))
            record.headers = [*record.headers, *headers]
            if not moves:
                return value
            remaining = copy(source)
            for name, _ in pairs:
                remaining.pop(name, None)
            return remaining

        return Plan(schema, updated, change)


class HeaderFromKey(HeaderFrom, OnKey[HeaderFromConfig]):
    """`HeaderFrom$Key`."""


class HeaderFromValue(HeaderFrom, OnValue[HeaderFromConfig]):
    """`HeaderFrom$Value`."""
