"""Keeping to `log.cleaner.io.max.bytes.per.second`."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_MIN = 0.05
"""Seconds below which no pause is worth taking."""


class Throttle:
    """Count every byte read and written with `count`; it sleeps where that was too fast."""

    def __init__(
        self,
        bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    def count(self, size: int) -> None:
        """Count `size` bytes, and sleep if they exceed the rate. Up to a second of unused rate is saved."""
        now = self._clock()
        self._due = max(self._due, now - 1) + size / self._rate
        if self._due - now >= PAUSE_MIN:
            self._sleep(self._due - now)
