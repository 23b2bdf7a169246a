"""The rate of what a client used in the last seconds, and a bucket of tokens (KIP-13, KIP-599).

Both are computed as by Kafka's metrics `Rate` and `TokenBucket`, with the defaults of `quota.window.num` and
`quota.window.size.seconds`. Times are milliseconds of a clock that does not go back.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOWS: Final = 11
"""The default of Kafka's `quota.window.num` and `controller.quota.window.num`."""
WINDOW_MS: Final = 1_000
"""The default of `quota.window.size.seconds`, in milliseconds."""


class _Window:
    __slots__ = ("began_ms", "last_ms", "value")

    def __init__(self, began_ms: int) -> None:
        self.began_ms = self.last_ms = began_ms
        self.value = 0.0


class Rate:
    """A rate per second, over the last `WINDOWS` windows."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[_Window] = deque(maxlen=WINDOWS + 1)

    def record(self, value: float, now_ms: int) -> None:
        """Add a value."""
        windows = self._windows
        if not windows or now_ms - windows[-1].began_ms >= WINDOW_MS:
            windows.append(_Window(now_ms))
        windows[-1].value += value
        windows[-1].last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        """Return the rate."""
        elapsed_ms = self._elapsed_ms(now_ms)
        return self._sum() / (elapsed_ms / 1000)

    def throttle_ms(self, limit: float, now_ms: int) -> float:
        """Return how long to wait until the rate is within the limit; 0 if it is now."""
        elapsed_ms = self._elapsed_ms(now_ms)
        rate = self._sum() / (elapsed_ms / 1000)
        return (rate - limit) / limit * elapsed_ms if rate > limit else 0.0

    def _sum(self) -> float:
        return sum(window.value for window in self._windows)

    def _elapsed_ms(self, now_ms: int) -> int:
        """Forget old windows, and return the time that the others are about."""
        windows = self._windows
        while windows and now_ms - windows[0].last_ms >= WINDOWS * WINDOW_MS:
            windows.popleft()
        # A client that has just begun is compared as if it had been quiet before: a burst is no violation.
        elapsed_ms = now_ms - windows[0].began_ms if windows else 0
        missing = WINDOWS - 1 - elapsed_ms // WINDOW_MS
        return elapsed_ms + max(missing, 0) * WINDOW_MS


class TokenBucket:
    """Tokens that grow back at a limit per second, up to what `WINDOWS` windows give."""

    __slots__ = ("_filled_ms", "_tokens")

    def __init__(self, limit: float, now_ms: int) -> None:
        self._tokens = _burst(limit)
        self._filled_ms = now_ms

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the tokens that are there; below 0 if too many were taken."""
        grown = self._tokens + limit * (now_ms - self._filled_ms) / 1000
        self._tokens, self._filled_ms = min(_burst(limit), grown), now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens, also more than there are."""
        self._tokens = min(_burst(limit), self.tokens(limit, now_ms) - count)

    def throttle_ms(self, limit: float, now_ms: int) -> float:
        """Return how long to wait until no more tokens were taken than there were."""
        return max(-self.tokens(limit, now_ms), 0.0) * 1000 / limit


def _burst(limit: float) -> float:
    return limit * WINDOWS * WINDOW_MS / 1000
