"""A bound on memory: bytes taken and given back, and a queue of calls that wait for room."""

from __future__ import annotations

import asyncio
import time
from collections import deque


class Memory:
    """A budget of `limit` bytes, first come first served; a single call may take more if none is in use."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.waited_ns = 0
        """Sum of all waiting times, in nanoseconds."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """Number of calls that wait for room."""
        return len(self._waiting)

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if they are free and no call waits; return True if taken."""
        if self._waiting or not self._fits(size):
            return False
        self.used += size
        return True

    async def take(self, size: int) -> None:
        """Take `size` bytes, waiting until they are free."""
        if self.try_take(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        start_ns = time.perf_counter_ns()
        try:
            await turn
        except asyncio.CancelledError:
            if (size, turn) in self._waiting:
                self._waiting.remove((size, turn))
            self.free(0 if turn.cancelled() else size)
            raise
        finally:
            self.waited_ns += time.perf_counter_ns() - start_ns

    def free(self, size: int) -> None:
        """Give `size` bytes back; waiting calls go on in their order as far as they fit now."""
        self.used -= size
        while self._waiting and self._fits(self._waiting[0][0]):
            next_size, turn = self._waiting.popleft()
            if not turn.done():
                self.used += next_size
                turn.set_result(None)

    def fail(self, error: Exception) -> None:
        """End all waiting: every waiting `take` raises `error`."""
        while self._waiting:
            _, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)

    def _fits(self, size: int) -> bool:
        return not self.used or self.used + size <= self.limit
