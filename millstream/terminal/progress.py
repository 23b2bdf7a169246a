"""A progress bar on stderr with rate and remaining time; nothing is drawn without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self


class Progress:
    """The progress of a long task. `advance` is cheap: call it per batch, not per record."""

    def __init__(self, draw: Callable[[float], None] | None) -> None:
        self._draw = draw
        self.done = 0.0

    def advance(self, amount: float) -> None:
        """Add `amount` to the progress."""
        self.done += amount
        if self._draw is not None:
            self._draw(self.done)

    @classmethod
    @contextmanager
    def shown(cls, what: str, total: float | None, unit: str) -> Iterator[Self]:
        """Show a bar during the block, if stderr is a terminal."""
        if not sys.stderr.isatty():
            yield cls(None)
            return
        # Rich takes 60 ms to import.
        from rich import progress
        from rich.console import Console

        bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn(f"{{task.completed:,.0f}}{f' {unit}' if unit else ''}"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with bar:
            task = bar.add_task(what, total=total, rate="")

            def draw(done: float) -> None:
                speed = bar.tasks[0].speed
                bar.update(task, completed=done, rate="" if speed is None else f"{speed:,.0f}/s")

            yield cls(draw)
