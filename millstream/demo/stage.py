"""The display of a part: records in and out, rate, and state."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Stage:
    """A row of the table. `update` keeps the time from the first record in to the last one out."""

    name: str
    records_in: int = 0
    records_out: int = 0
    state: str = "starting"
    restarts: int = 0
    clock: Callable[[], float] = time.monotonic
    _began: float | None = None
    _ended: float = 0.0

    def update(self, records_in: int, records_out: int) -> None:
        """Set new counts."""
        if (records_in, records_out) == (self.records_in, self.records_out):
            return
        now = self.clock()
        if self._began is None:
            self._began = now
            self.state = "running"
        self._ended = now
        self.records_in, self.records_out = records_in, records_out

    @property
    def seconds(self) -> float:
        """The seconds from the first change to the last."""
        return 0.0 if self._began is None else self._ended - self._began

    @property
    def rate(self) -> float | None:
        """The records read in a second; None if the time is too short."""
        return self.records_in / self.seconds if self.seconds > 0.5 else None
