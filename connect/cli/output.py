"""Tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from kafka_client.escape import escape_controls

_PIPE_WIDTH = 10_000
"""The width of a table in a pipe, where nothing may be folded since programs read the fields."""


def print_json(document: Any) -> None:
    """Print a JSON document."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under upper-case headings."""
    # Rich takes 60 ms to import: only tables pay for it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console = Console(file=sys.stdout, width=_PIPE_WIDTH)
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.upper(), overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else escape_controls(str(value))) for value in row))
    console.print(table)
