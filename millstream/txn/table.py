"""Tables on the terminal, and in a pipe one line a row, whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 10_000
"""Columns a line may have in a pipe, where programs read fields and nothing may be folded."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a header and the rows, columns at least two spaces apart."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)
