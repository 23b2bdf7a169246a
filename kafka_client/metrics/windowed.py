"""What happened lately: the mean, the largest and the smallest of values recorded per request or per batch.

As Kafka's `SampledStat` with `metrics.num.samples=2` and `metrics.sample.window.ms=30000`: values are kept
as sums over windows of 30 s, and what is told covers the present window and the one before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from kafka_client.metrics.metrics import Values

WINDOW_SECONDS = 30.0
_Window: TypeAlias = tuple[int, float, float, float]
"""A window's count, sum, largest and smallest."""
_EMPTY: _Window = (0, 0.0, -math.inf, math.inf)


class Windowed:
    """Values of the last 30 to 60 seconds. `clock` gives seconds that only grow.

    One thread records; any may read, for that changes nothing.
    """

    __slots__ = ("_before", "_begun", "_clock", "_made", "_now", "count", "last", "total")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = self._made = clock()
        self._now = self._before = _EMPTY
        self.count = 0
        """Values recorded ever."""
        self.total = 0.0
        """Their sum."""
        self.last = math.nan
        """The one recorded last; NaN before the first."""

    def record(self, value: float) -> None:
        """A value was measured now."""
        self._roll()
        self.count += 1
        self.total += value
        self.last = value
        count, total, largest, smallest = self._now
        self._now = count + 1, total + value, max(largest, value), min(smallest, value)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Record how many seconds the body takes, by the clock, unless it raises."""
        begun = self._clock()
        yield
        self.record(self._clock() - begun)

    @property
    def average(self) -> float:
        """The mean of what was recorded lately; NaN where nothing was, as in Kafka."""
        now, before, _ = self._lately()
        count = now[0] + before[0]
        return (now[1] + before[1]) / count if count else math.nan

    @property
    def largest(self) -> float:
        """The largest value recorded lately; NaN where none was."""
        now, before, _ = self._lately()
        largest = max(now[2], before[2])
        return math.nan if largest == -math.inf else largest

    @property
    def smallest(self) -> float:
        """The smallest value recorded lately; NaN where none was."""
        now, before, _ = self._lately()
        smallest = min(now[3], before[3])
        return math.nan if smallest == math.inf else smallest

    @property
    def recent(self) -> float:
        """The sum of what was recorded lately."""
        now, before, _ = self._lately()
        return now[1] + before[1]

    @property
    def ratio(self) -> float:
        """Of seconds: which share of the time lately they are, from 0 to 1."""
        now, before, begun = self._lately()
        passed = self._clock() - max(begun - WINDOW_SECONDS, self._made)
        return min((now[1] + before[1]) / passed, 1.0) if passed > 0 else 0.0

    def _roll(self) -> None:
        if self._clock() - self._begun >= WINDOW_SECONDS:
            self._now, self._before, self._begun = self._lately()

    def _lately(self) -> tuple[_Window, _Window, float]:
        """The present window, the one before, and when the present one has begun."""
        windows = (self._clock() - self._begun) // WINDOW_SECONDS
        if windows < 1:
            return self._now, self._before, self._begun
        return _EMPTY, self._now if windows == 1 else _EMPTY, self._begun + windows * WINDOW_SECONDS


def in_ms(name: str, seconds: Windowed) -> Values:
    """Mean and largest of times, in milliseconds, as `name-avg` and `name-max`."""
    return {f"{name}-avg": seconds.average * 1000, f"{name}-max": seconds.largest * 1000}
