"""A clock that goes on by itself and that a test can put forward.

It is never put back: a timer set meanwhile would wait for the difference. Whoever wants the real time again
starts anew (`Served.clean`).
"""

from __future__ import annotations

import asyncio
import time


class ClockedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by that clock.

    `ahead_s`: seconds by which it is ahead of the real one; changed in the loop's thread only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ahead_s = 0.0

    def time(self) -> float:
        """Seconds of the steady clock."""
        return super().time() + self.ahead_s

    def now_ms(self) -> int:
        """The wall clock, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + int(self.ahead_s * 1000)
