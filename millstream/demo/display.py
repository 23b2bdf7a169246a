"""The demo's display: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from millstream.demo.stage import Stage

PLAIN_SECONDS = 3.0
"""The time between two lines of progress without a terminal."""


def stage_table(stages: Sequence[Stage], title: str) -> Table:
    """Return a table of the stages."""
    table = Table(title=title, title_justify="left")
    table.add_column("part")
    for heading in ("records in", "records out", "records/s"):
        table.add_column(heading, justify="right")
    table.add_column("state")
    for stage in stages:
        rate = "" if stage.rate is None else f"{stage.rate:,.0f}"
        state = stage.state if not stage.restarts else f"{stage.state} (restarted {stage.restarts}×)"
        table.add_row(stage.name, f"{stage.records_in:,}", f"{stage.records_out:,}", rate, state)
    return table


class Display:
    """A display of the progress while it is entered; `note` prints a line that stays."""

    def __init__(self, stages: Sequence[Stage], console: Console | None = None) -> None:
        self.console = console or Console()
        self._stages = stages
        self._began = time.monotonic()
        self._spoken = 0.0
        self._live = (
            Live(console=self.console, refresh_per_second=4, transient=True)
            if self.console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def seconds(self) -> float:
        """The seconds since the demo began."""
        return time.monotonic() - self._began

    def note(self, text: str) -> None:
        """Print a line that stays on the screen."""
        self.console.print(f"[{self.seconds:5.1f} s] {text}", markup=False, highlight=False, soft_wrap=True)

    def refresh(self) -> None:
        """Show the current stages."""
        if self._live is not None:
            self._live.update(stage_table(self._stages, f"{self.seconds:.0f} s"))
        elif self.seconds - self._spoken >= PLAIN_SECONDS:
            self._spoken = self.seconds
            self.note(" · ".join(f"{stage.name}: {stage.records_out:,}" for stage in self._stages))
