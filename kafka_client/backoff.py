"""How long to wait before the next attempt: longer each time, and not in step with others (KIP-580)."""

from __future__ import annotations

import random as _random
from collections.abc import Callable


class Backoff:
    """Waiting times that double from `first` to `limit`, each taken at random from its upper half, in
    seconds. `random`: floats in [0, 1).
    """

    def __init__(self, first: float, limit: float, random: Callable[[], float] = _random.random) -> None:
        self._first, self._limit, self._random = first, limit, random
        self.failures = 0

    def next(self) -> float:
        """How long to wait after one more failure."""
        full = min(self._limit, self._first * float(1 << min(self.failures, 30)))
        self.failures += 1
        return full * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """After a success."""
        self.failures = 0
