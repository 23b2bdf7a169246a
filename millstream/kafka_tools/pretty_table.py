"""Tables as ToolsUtils prints them: columns as wide as their widest cell, with a tab after each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print the headers and the rows."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))
