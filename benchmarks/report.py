"""Figures as they are printed: median, minimum and maximum of several runs, and the target beside them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table


def _digits(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


class Report:
    """A table of figures; `add` takes the runs of one figure, `show` prints them all."""

    def __init__(self, title: str) -> None:
        self._table = Table(title=title, title_justify="left")
        self._table.add_column("figure")
        for heading in ("median", "min", "max", "runs"):
            self._table.add_column(heading, justify="right")
        self._table.add_column("target", justify="right")

    def add(self, figure: str, runs: Sequence[float], target: str = "") -> None:
        """Add a row; `figure` has the unit."""
        self._table.add_row(
            figure, _digits(median(runs)), _digits(min(runs)), _digits(max(runs)), str(len(runs)), target
        )

    def show(self) -> None:
        """Print the machine and the table."""
        console = Console(width=120)
        console.print(
            f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, "
            f"Linux {platform.release()}"
        )
        console.print(self._table)
