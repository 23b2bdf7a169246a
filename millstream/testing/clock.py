"""A clock that runs in real time and that a test can put forward.

The clock is never put back, since timers set meanwhile would wait for the difference. A new broker returns to
the real time (`Served.clean`).
"""

from __future__ import annotations

import asyncio
import time


class ClockedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers use that clock.

    `ahead_s`: the seconds by which the clock is ahead of the real time; changed only in the loop's thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ahead_s = 0.0

    def time(self) -> float:
        """Return the seconds of the monotonic clock."""
        return super().time() + self.ahead_s

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + int(self.ahead_s * 1000)
