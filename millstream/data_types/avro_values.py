"""JSON values as fastavro writes them: what JSON has no form for is text there, and becomes what the schema
says.

Bytes are base64, decimals, UUIDs, dates and times the text that reading shows. Of a union's branches it is
the first that takes the value. What does not fit otherwise is passed on: fastavro says what is wrong.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from millstream.data_types.data_type import JsonValue

_LOGICAL: Mapping[str, type[Any]] = {
    "date": datetime.date,
    "decimal": decimal.Decimal,
    "local-timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "time-micros": datetime.time,
    "time-millis": datetime.time,
    "timestamp-micros": datetime.datetime,
    "timestamp-millis": datetime.datetime,
    "uuid": uuid.UUID,
}
"""What the text of a logical type is read as."""


def value_maker(
    schema: Any, named: Mapping[str, Any], validate: Callable[[Any, Any], bool]
) -> Callable[[JsonValue], Any]:
    """What makes a JSON value one to write. `schema` is parsed, `named` are its named types by their full
    names; `validate(value, schema)` says whether a value is of a schema.
    """

    def made(value: Any, schema: Any) -> Any:
        match schema:
            case list():
                return of_union(value, schema)
            case str():
                return made(value, named[schema]) if schema in named else _leaf(value, schema, None)
        match schema["type"], value:
            case "record" | "error", dict():
                fields = {field["name"]: field["type"] for field in schema["fields"]}
                return {
                    name: made(each, fields[name]) if name in fields else each for name, each in value.items()
                }
            case "array", list():
                return [made(each, schema["items"]) for each in value]
            case "map", dict():
                return {name: made(each, schema["values"]) for name, each in value.items()}
            case ((dict() | list()), _):
                return made(value, schema["type"])
            case kind, _:
                return _leaf(value, kind, schema.get("logicalType"))

    def of_union(value: Any, branches: list[Any]) -> Any:
        for branch in branches:
            try:
                candidate = made(value, branch)
            except ValueError:
                continue
            if validate(candidate, branch):
                # Said with its branch: fastavro would look for one itself, and take any text for a date.
                return None if candidate is None else (_branch_name(branch), candidate)
        return value

    return lambda value: made(value, schema)


def _branch_name(branch: Any) -> str:
    """As fastavro calls it: a named type's name, else the type."""
    return str(branch if isinstance(branch, str) else branch.get("name", branch["type"]))


def _leaf(value: Any, kind: str, logical: str | None) -> Any:
    """A value that holds no others; ValueError for text that is not of the logical type, or not base64."""
    wanted = _LOGICAL.get(logical or "", bytes if kind in ("bytes", "fixed") else None)
    if wanted is None or not isinstance(value, str):
        return value
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise ValueError(f"{value!r} is no {logical or 'base64'}") from None
