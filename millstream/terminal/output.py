"""The output of commands on stdout: rows, in the requested form."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TextIO

from kafka_client.escape import escape_controls

PIPE_WIDTH = 10_000
"""The width of a table in a pipe, where nothing may be folded since programs read the fields."""

Row = Mapping[str, Any]
"""A row's values by their names, in the order of the columns. Names are lower case with underscores.

Values are JSON's: text, numbers, booleans, None, lists and mappings.
"""

Columns = Sequence[str] | Mapping[str, str]
"""The names of a table's or plain line's columns, in order; a mapping has also their headings."""


class Format(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    """Columns, aligned."""
    PLAIN = "plain"
    """Values with a tab between them, a row a line, without a header."""
    JSON = "json"
    """An array, or an object if there is always exactly one row."""
    JSONL = "jsonl"
    """An object a line."""
    YAML = "yaml"


def show(rows: Iterable[Row], form: Format, columns: Columns, out: TextIO | None = None) -> None:
    """Print all rows."""
    out = out or sys.stdout
    match form:
        case Format.TABLE:
            _table(rows, columns, out)
        case Format.PLAIN:
            for row in rows:
                out.write("\t".join(_line(_text(row.get(name))) for name in columns) + "\n")
        case Format.JSONL:
            for row in rows:
                out.write(_json(row) + "\n")
        case Format.JSON:
            out.write(_indented(list(rows)))
        case Format.YAML:
            out.write(_yaml(list(rows)))


def show_one(row: Row, form: Format, columns: Columns, out: TextIO | None = None) -> None:
    """Print the only row: a table has a line for each value, JSON and YAML one object."""
    out = out or sys.stdout
    match form:
        case Format.TABLE:
            _table([{"name": name, "value": row.get(name)} for name in columns], ("name", "value"), out)
        case Format.JSON:
            out.write(_indented(row))
        case Format.YAML:
            out.write(_yaml(row))
        case _:
            show([row], form, columns, out)


def _table(rows: Iterable[Row], columns: Columns, out: TextIO) -> None:
    # Rich takes 60 ms to import: only tables pay for it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out)
    if not console.is_terminal:
        console = Console(file=out, width=PIPE_WIDTH)
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        heading = columns[name] if isinstance(columns, Mapping) else name.replace("_", " ").upper()
        table.add_column(Text(heading), overflow="fold")
    for row in rows:
        table.add_row(*(Text(escape_controls(_text(row.get(name)))) for name in columns))
    console.print(table)


def _text(value: Any) -> str:
    """Return a value as the text of a cell: a dash for None, lists with commas."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(_text, value)) or "-"
        case dict():
            return ",".join(f"{key}={_text(each)}" for key, each in value.items()) or "-"
        case _:
            return str(value)


def _line(text: str) -> str:
    """Escape control characters and backslashes, so that a field stays in one line."""
    return escape_controls(text.replace("\\", r"\\"))


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _indented(value: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _yaml(value: Any) -> str:
    import msgspec

    return msgspec.yaml.encode(value).decode()
