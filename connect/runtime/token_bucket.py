"""TokenBucket: a rate per second, with a burst of one second's worth."""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """Tokens that come at `rate` per second, up to those of one second; None: no limit.

    What is taken may exceed what is there: the debt is waited for before more is taken. So a batch of any
    size passes whole, and the average stays below the rate. `clock` returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = 0.0
        self._counted_at = clock()
        self.rate: float | None = None

    def change(self, rate: float | None) -> None:
        """Set the rate from now on. A debt remains, but takes no longer than it did at the former rate."""
        if rate == self.rate:
            return
        self._count()
        before, self.rate = self.rate, rate
        if rate is None or before is None:
            self._tokens = 0.0
        else:
            self._tokens = min(self._tokens, rate)
            if self._tokens < 0:
                self._tokens = max(self._tokens, self._tokens * rate / before)

    def take(self, tokens: float) -> None:
        """Take tokens, more than there are if need be."""
        if self.rate is not None:
            self._count()
            self._tokens -= tokens

    def delay(self) -> float:
        """Return the seconds until tokens may be taken again; 0 for now."""
        if self.rate is None:
            return 0.0
        self._count()
        return 0.0 if self._tokens >= 0 else -self._tokens / self.rate

    def _count(self) -> None:
        now = self._clock()
        if self.rate is not None:
            self._tokens = min(self._tokens + (now - self._counted_at) * self.rate, self.rate)
        self._counted_at = now
