"""Batches that are validated in the thread pool, since that would hold up the event loop.

    larger than the loop's share ──> queued ──> `BatchRules.validate` in the pool ──> appended on the loop

At most VALIDATING_MAX batches of VALIDATING_BYTES_MAX together are in the pool at one time, so that threads
are left for fsync. The queue is bounded by the connections: each waits for the batches of one request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from logd.broker.pool import run_job

Result = TypeVar("Result")

VALIDATING_MAX = 4
"""How many batches are validated, or looked through for a time, in the pool at once."""
VALIDATING_BYTES_MAX = 64 * 1024 * 1024
"""How many bytes they have together, as they came; a single larger one is validated alone."""


class Validator:
    """Runs the jobs that decompress batches, in the order asked, in the pool."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self._running = 0
        self._running_bytes = 0
        self._run = 0

    def statistics(self) -> dict[str, int]:
        """Return how many run, their bytes, the bounds of both, how many wait, and how many have ended."""
        return {
            "running": self._running,
            "running_max": VALIDATING_MAX,
            "running_bytes": self._running_bytes,
            "running_bytes_max": VALIDATING_BYTES_MAX,
            "queued": len(self._queue),
            "run": self._run,
        }

    async def run(self, job: Callable[[], Result], size: int) -> Result:
        """Run `job`, which decompresses a batch of `size` bytes, in the pool; return or raise what it does.

        One that is cancelled while it runs is waited for.
        """
        await self._turn(size)
        try:
            return await run_job(self._executor, job)
        finally:
            self._running -= 1
            self._running_bytes -= size
            self._run += 1
            self._begin_next()

    async def _turn(self, size: int) -> None:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((begun, size))
        self._begin_next()
        try:
            await begun
        except asyncio.CancelledError:
            if begun.done() and not begun.cancelled():  # its turn had come
                self._running -= 1
                self._running_bytes -= size
                self._begin_next()
            raise

    def _begin_next(self) -> None:
        while self._queue and self._running < VALIDATING_MAX:
            begun, size = self._queue[0]
            if begun.cancelled():
                self._queue.popleft()
                continue
            if self._running and self._running_bytes + size > VALIDATING_BYTES_MAX:
                return
            self._queue.popleft()
            self._running += 1
            self._running_bytes += size
            begun.set_result(None)
