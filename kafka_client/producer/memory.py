"""A bound on memory: bytes taken and given back, and a queue of those who wait for room."""

from __future__ import annotations

import asyncio
import time
from collections import deque


class Memory:
    """At most `limit` bytes are taken at a time, first come first served; one alone may take more."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.waited_ns = 0
        """How long those who had to wait have waited, all together."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for room."""
        return len(self._waiting)

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if they are free and nobody waits."""
        if self._waiting or not self._fits(size):
            return False
        self.taken += size
        return True

    async def take(self, size: int) -> None:
        """Take `size` bytes, waiting until they are free."""
        if self.try_take(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        begun = time.perf_counter_ns()
        try:
            await turn
        except asyncio.CancelledError:
            if (size, turn) in self._waiting:
                self._waiting.remove((size, turn))
            self.free(0 if turn.cancelled() else size)
            raise
        finally:
            self.waited_ns += time.perf_counter_ns() - begun

    def free(self, size: int) -> None:
        """Give `size` bytes back; those who wait go on in their order, as far as they fit now."""
        self.taken -= size
        while self._waiting and self._fits(self._waiting[0][0]):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self.taken += wanted
                turn.set_result(None)

    def fail(self, error: Exception) -> None:
        """End all waiting: every waiting `take` raises `error`."""
        while self._waiting:
            _, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)

    def _fits(self, size: int) -> bool:
        return not self.taken or self.taken + size <= self.limit
