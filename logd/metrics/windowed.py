"""What happened lately: the mean and the largest of values recorded per request or per batch.

As Kafka's `SampledStat` with `metrics.num.samples=2` and `metrics.sample.window.ms=30000`: values are kept
as sums over windows of 30 s, and what is told covers the present window and the one before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

WINDOW_SECONDS = 30.0


class Windowed:
    """Values of the last 30 to 60 seconds. `clock` gives seconds that only grow."""

    __slots__ = ("_before", "_begun", "_clock", "_now", "count", "total")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._now = self._before = (0, 0.0, -math.inf)
        self.count = 0
        """Values recorded ever."""
        self.total = 0.0
        """Their sum."""

    def record(self, value: float) -> None:
        """A value was measured now."""
        self._roll()
        self.count += 1
        self.total += value
        count, total, largest = self._now
        self._now = count + 1, total + value, value if value > largest else largest

    @property
    def average(self) -> float:
        """The mean of what was recorded lately; NaN where nothing was, as in Kafka."""
        self._roll()
        count = self._now[0] + self._before[0]
        return (self._now[1] + self._before[1]) / count if count else math.nan

    @property
    def largest(self) -> float:
        """The largest value recorded lately; NaN where none was."""
        self._roll()
        largest = max(self._now[2], self._before[2])
        return math.nan if largest == -math.inf else largest

    def _roll(self) -> None:
        windows = (self._clock() - self._begun) // WINDOW_SECONDS
        if windows >= 1:
            empty = (0, 0.0, -math.inf)
            self._before = self._now if windows == 1 else empty
            self._now = empty
            self._begun += windows * WINDOW_SECONDS
