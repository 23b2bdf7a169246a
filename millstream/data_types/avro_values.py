"""Conversion of JSON values to the values that fastavro writes, by the schema.

Bytes are base64 text in JSON. Decimals, UUIDs, dates and times have the text that reading shows. A union
takes the first branch that accepts the value. Other mismatches are left to fastavro, which reports them.
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
"""The Python types of logical types."""


def value_maker(
    schema: Any, named: Mapping[str, Any], validate: Callable[[Any, Any], bool]
) -> Callable[[JsonValue], Any]:
    """Return a function that converts a JSON value to one that fastavro writes.

    `schema` is parsed, and `named` are its named types by full name. `validate(value, schema)` returns True
    if the value is of the schema.
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
                # With the branch, since fastavro would choose one itself and accept any text as a date.
                return None if candidate is None else (_branch_name(branch), candidate)
        return value

    return lambda value: made(value, schema)


def _branch_name(branch: Any) -> str:
    """Return fastavro's name of a branch: a named type's name, or the type."""
    return str(branch if isinstance(branch, str) else branch.get("name", branch["type"]))


def _leaf(value: Any, kind: str, logical: str | None) -> Any:
    """Return a value without children.

    Raises ValueError for text that is not of the logical type, or not base64.
    """
    target = _LOGICAL.get(logical or "", bytes if kind in ("bytes", "fixed") else None)
    if target is None or not isinstance(value, str):
        return value
    try:
        return msgspec.convert(value, target)
    except msgspec.ValidationError:
        raise ValueError(f"{value!r} is no {logical or 'base64'}") from None
