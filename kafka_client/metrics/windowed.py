"""Recent values, recorded per request or per batch: their mean, the largest and the smallest.

As in Kafka's `SampledStat` with `metrics.num.samples=2` and `metrics.sample.window.ms=30000`: values are
summed over windows of 30 s, and the results cover the current window and the one before.
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
    """Values of the last 30 to 60 seconds. `clock` returns monotonic seconds.

    One thread records; any thread may read, since reading changes nothing.
    """

    __slots__ = ("_before", "_clock", "_made", "_now", "_window_start", "count", "last", "total")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._window_start = self._made = clock()
        self._now = self._before = _EMPTY
        self.count = 0
        """The number of all recorded values."""
        self.total = 0.0
        """The sum of all recorded values."""
        self.last = math.nan
        """The last recorded value; NaN before the first."""

    def record(self, value: float) -> None:
        """Record a value that was measured now."""
        self._roll()
        self.count += 1
        self.total += value
        self.last = value
        count, total, largest, smallest = self._now
        self._now = count + 1, total + value, max(largest, value), min(smallest, value)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Record the duration of the body in seconds, unless it raises."""
        start = self._clock()
        yield
        self.record(self._clock() - start)

    @property
    def average(self) -> float:
        """The mean of recent values; NaN without any, as in Kafka."""
        now, before, _ = self._lately()
        count = now[0] + before[0]
        return (now[1] + before[1]) / count if count else math.nan

    @property
    def largest(self) -> float:
        """The largest recent value; NaN without any."""
        now, before, _ = self._lately()
        largest = max(now[2], before[2])
        return math.nan if largest == -math.inf else largest

    @property
    def smallest(self) -> float:
        """The smallest recent value; NaN without any."""
        now, before, _ = self._lately()
        smallest = min(now[3], before[3])
        return math.nan if smallest == math.inf else smallest

    @property
    def recent(self) -> float:
        """The sum of recent values."""
        now, before, _ = self._lately()
        return now[1] + before[1]

    @property
    def ratio(self) -> float:
        """The share of recent time that these values, in seconds, make up: 0 to 1."""
        return min(self.rate, 1.0)

    @property
    def rate(self) -> float:
        """The sum of recent values per second of recent time."""
        now, before, start = self._lately()
        passed = self._clock() - max(start - WINDOW_SECONDS, self._made)
        return (now[1] + before[1]) / passed if passed > 0 else 0.0

    def _roll(self) -> None:
        if self._clock() - self._window_start >= WINDOW_SECONDS:
            self._now, self._before, self._window_start = self._lately()

    def _lately(self) -> tuple[_Window, _Window, float]:
        """Return the current window, the one before, and the start of the current one."""
        windows = (self._clock() - self._window_start) // WINDOW_SECONDS
        if windows < 1:
            return self._now, self._before, self._window_start
        return _EMPTY, self._now if windows == 1 else _EMPTY, self._window_start + windows * WINDOW_SECONDS


def in_ms(name: str, seconds: Windowed) -> Values:
    """Return the mean and largest of times, in milliseconds, as `name-avg` and `name-max`."""
    return {f"{name}-avg": seconds.average * 1000, f"{name}-max": seconds.largest * 1000}
