"""A bound of the bytes that are read in a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Pace:
    """Delays a reader so that it takes at most `rate` bytes/s in the long run; None is unlimited.

    All readers that share it share its rate. `clock` and `sleep` are in seconds.
    """

    def __init__(
        self,
        rate: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.rate = rate
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()
        """When the bytes taken so far are within the rate."""

    async def take(self, size: int) -> None:
        """Count `size` bytes that were read, and wait until they are within the rate."""
        if self.rate is None:
            return
        now = self._clock()
        self._free_at = max(self._free_at, now) + size / self.rate
        await self._sleep(self._free_at - now)
