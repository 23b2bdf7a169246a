"""Pauses before the next attempt: longer each time, and random, so that clients spread out (KIP-580)."""

from __future__ import annotations

import random as _random
from collections.abc import Callable


class Backoff:
    """Pauses in seconds that double from `first` to `limit`, each at random from 50 to 100 % of that.

    `random` returns floats in [0, 1).
    """

    def __init__(self, first: float, limit: float, random: Callable[[], float] = _random.random) -> None:
        self._first, self._limit, self._random = first, limit, random
        self.failures = 0

    def next(self) -> float:
        """Count a failure, and return the seconds to wait after it."""
        full = min(self._limit, self._first * float(1 << min(self.failures, 30)))
        self.failures += 1
        return full * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """Start from `first` again, after a success."""
        self.failures = 0
