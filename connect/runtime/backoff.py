"""Waiting longer each time."""

from __future__ import annotations

import random

FIRST_SECONDS = 0.1
MAX_SECONDS = 30.0


class Backoff:
    """Doubles from `FIRST_SECONDS` to `MAX_SECONDS`, with jitter so that tasks do not march in step."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS

    def next_seconds(self) -> float:
        """How long to wait now."""
        seconds = self._seconds * random.uniform(0.8, 1.2)
        self._seconds = min(self._seconds * 2, MAX_SECONDS)
        return seconds
