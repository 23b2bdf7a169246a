"""Columns of a Delta table: which it gets for a batch, and which it cannot have.

Schemas are in Spark's JSON form, which is Delta's own. A Delta table keeps the types of its columns, and may
get further columns, and further fields in structs. The rules for names are those of tables without column
mapping.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from plugins.spark.errors import SchemaConflict

Field = dict[str, Any]

_PRIMITIVES = frozenset(
    (
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
    )
)
_FURTHER = re.compile(r"decimal\(\d+, ?\d+\)|timestamp_ntz")
_NO_NAME = frozenset(" ,;{}()\n\t=")


def table_fields(columns: str, partition_by: Sequence[str]) -> list[Field]:
    """Return the fields of a new table. Raises SchemaConflict if a Delta table cannot have them."""
    fields = _fields(columns)
    _check_distinct(fields)
    binary = [
        field["name"] for field in fields if field["name"] in partition_by and field["type"] == "binary"
    ]
    if binary:
        raise SchemaConflict(
            f"partition.by: {', '.join(binary)} is binary, which a Delta table's readers do not agree upon: "
            "use a text, such as CAST(key AS STRING)"
        )
    return fields


def added_fields(table: str, columns: str) -> list[Field]:
    """Return the columns that `table` lacks, and those that have more fields in `columns` than in `table`.

    Raises SchemaConflict if a column has another type than in the table, or a Delta table cannot have it.
    """
    before = {field["name"]: field for field in _fields(table, check=False)}
    after = _fields(columns)
    _check_distinct([*before.values(), *(field for field in after if field["name"] not in before)])
    return [
        field
        for field in after
        if field["name"] not in before or _grows(field["name"], before[field["name"]]["type"], field["type"])
    ]


def schema_json(fields: Sequence[Mapping[str, Any]]) -> str:
    """Return the schema of these fields."""
    return json.dumps({"type": "struct", "fields": list(fields)})


def _fields(schema: str, *, check: bool = True) -> list[Field]:
    fields = json.loads(schema)["fields"]
    return [_nullable(field["name"], field, check) for field in fields]


def _nullable(path: str, field: Mapping[str, Any], check: bool) -> Field:
    """Return the field as one that may be null, without metadata. `path` names it in errors."""
    name: str = field["name"]
    if check and _NO_NAME.intersection(name):
        raise SchemaConflict(
            f"a Delta table cannot have a column {path!r}, as no name has spaces or the characters "
            ",;{}()=: declare the columns in value.schema"
        )
    return {"name": name, "type": _kind(path, field["type"], check), "nullable": True, "metadata": {}}


def _kind(path: str, kind: Any, check: bool) -> Any:
    if isinstance(kind, str):
        if check and kind not in _PRIMITIVES and not _FURTHER.fullmatch(kind):
            raise SchemaConflict(f"a Delta table cannot have the column {path} of type {kind}: cast it")
        return kind.replace(" ", "") if kind.startswith("decimal") else kind
    if kind["type"] == "struct":
        fields = [_nullable(f"{path}.{field['name']}", field, check) for field in kind["fields"]]
        return {"type": "struct", "fields": fields}
    if kind["type"] == "array":
        return {**kind, "elementType": _kind(path, kind["elementType"], check), "containsNull": True}
    if kind["type"] == "map":
        values = {"valueType": _kind(path, kind["valueType"], check), "valueContainsNull": True}
        return {**kind, "keyType": _kind(path, kind["keyType"], check), **values}
    raise SchemaConflict(f"a Delta table cannot have the column {path} of type {kind['type']}: cast it")


def _grows(path: str, old: Any, new: Any) -> bool:
    """Return True if `new` has fields that `old` lacks. Raises SchemaConflict for any other difference."""
    if old == new:
        return False
    if not isinstance(old, str) and not isinstance(new, str) and old["type"] == new["type"]:
        if old["type"] == "array":
            return _grows(f"{path}[]", old["elementType"], new["elementType"])
        if old["type"] == "struct":
            before = {field["name"]: field["type"] for field in old["fields"]}
            after = {field["name"]: field["type"] for field in new["fields"]}
            grown = [_grows(f"{path}.{n}", before[n], kind) for n, kind in after.items() if n in before]
            return any(grown) or not after.keys() <= before.keys()
    raise SchemaConflict(
        f"{path} was {_text(old)} and is {_text(new)}, and a Delta table's columns keep their types: declare "
        "it in value.schema as it was, or take a new path"
    )


def _check_distinct(fields: Sequence[Mapping[str, Any]]) -> None:
    """Raise SchemaConflict if two names differ only in upper and lower case: for Delta they are the same."""
    names: dict[str, str] = {}
    for name in (field["name"] for field in fields):
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise SchemaConflict(f"a Delta table cannot have the columns {other} and {name}: rename one")


def _text(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])
