"""Paths of fields: `field.syntax.version` (KIP-821)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from connect.api.schema import Schema
from connect.config import setting
from connect.errors import ConfigError
from connect.transforms.fields import FillConfig, as_map, as_struct, field_value

_PURPOSE = "nested field access"


class PathConfig(FillConfig):
    """The setting of transforms that take paths of fields."""

    field_syntax_version: Literal["V1", "V2"] = setting(
        "V1: names of top-level fields. V2: dots lead to nested fields; backticks enclose a name with dots.",
        default="V1",
        importance="HIGH",
    )


class FieldPath:
    """A path to a field of a map or struct."""

    def __init__(self, text: str, version: str, key: str) -> None:
        """Parse the path. Raises ConfigError, for the setting `key`, if a backtick has no partner."""
        self.text = text
        self._steps = [text] if version == "V1" else list(_steps(text, key))

    def schema(self, schema: Schema) -> Schema | None:
        """Return the schema of the field, or None if there is no such field."""
        current: Schema | None = schema
        for step in self._steps:
            current = current.fields.get(step) if current else None
        return current

    def of_map(self, value: Any) -> Any:
        """Return the field's value, or None. Raises DataError if a parent of the field is no map."""
        *parents, last = self._steps
        for step in parents:
            value = value.get(step)
            if value is None:
                return None
            as_map(value, _PURPOSE)
        return value.get(last)

    def of_struct(self, value: Any, schema: Schema, fill: bool) -> Any:
        """Return the field's value, or None. A null parent has its default, the field itself if `fill`."""
        *parents, last = self._steps
        for step in parents:
            value = field_value(value, step, schema.fields[step], True)
            if value is None:
                return None
            as_struct(value, _PURPOSE)
            schema = schema.fields[step]
        return field_value(value, last, schema.fields[last], fill)


def _steps(path: str, key: str) -> Iterator[str]:
    """Yield the names that a V2 path consists of, without the backticks around them."""
    position = 0
    while position < len(path):
        if path[position] == "`":
            name, position = _enclosed(path, position, key)
            yield name
        else:
            end = path.find(".", position)
            yield path[position:] if end < 0 else path[position:end]
            position = len(path) if end < 0 else end + 1
    if not path or path.endswith("."):
        yield ""


def _enclosed(path: str, opening: int, key: str) -> tuple[str, int]:
    """Return the name between the backtick at `opening` and its partner, and where the next name begins.

    Only a backtick before a dot or at the end is a partner; behind a backslash it is part of the name.
    """
    name, start = "", opening + 1
    position = start
    while True:
        position = path.find("`", position)
        is_last = position >= len(path) - 1
        escaped = position >= 0 and path[position - 1] == "\\"
        if position < 0 or (is_last and escaped):
            hint = f"put a backslash before the backtick at position {opening} if it is part of the name"
            raise ConfigError(key, path, f"a backtick has no partner; {hint}")
        if is_last:
            return name + path[start:position], position + 1
        if path[position + 1] == "." and not escaped:
            return name + path[start:position], position + 2
        if path[position + 1] == ".":
            name += path[start : position - 1] + "`"
            start = position + 1
        position += 1
