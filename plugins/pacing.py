"""Pace: how many records or requests a source or sink may do now, at a rate per second."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""A function that returns the time in seconds, from any start."""


class Pace:
    """A schedule of `rate` turns per second on average; a rate of 0 or less sets no bound."""

    def __init__(self, rate: float, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._began: float | None = None
        self._turns = 0

    def take(self, most: int) -> int:
        """Take the turns that are due, at most `most`, and return their number.

        Turns that are not taken in time are due later at once, but never more than those of a second.
        """
        if self._rate <= 0:
            return most
        now = self._clock()
        if self._began is None:
            self._began = now
        # The first turn is due at once.
        due = int((now - self._began) * self._rate) + 1 - self._turns
        burst = max(1, int(self._rate))
        if due > burst:
            self._turns += due - burst
            due = burst
        count = max(0, min(due, most))
        self._turns += count
        return count

    def seconds_to_next(self) -> float:
        """Return the seconds until a turn is due, 0 if one is due now."""
        if self._rate <= 0 or self._began is None:
            return 0.0
        return max(0.0, self._began + self._turns / self._rate - self._clock())
