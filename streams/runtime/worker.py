"""The thread user code runs in, so that the event loop, and with it the heartbeats, go on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """One thread; a task is only ever touched there, or in the loop while nothing runs there."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="streams-worker")
        self._begun: dict[asyncio.Future[Any], float] = {}

    def statistics(self) -> dict[str, float]:
        """worker_jobs in the thread or waiting for it; seconds since the oldest was handed over.

        Who hands one over waits for it, and only one task of the event loop does so at a time.
        """
        oldest = time.monotonic() - min(self._begun.values()) if self._begun else 0.0
        return {"worker_jobs": len(self._begun), "oldest_worker_job_seconds": oldest}

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``work`` in the thread. Cancelling waits for its end: nobody may touch the task before."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **kwargs))
        self._begun[future] = time.monotonic()
        future.add_done_callback(self._ended)
        cancelled = False
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                cancelled = True  # keep waiting: it may be cancelled again
        if cancelled:
            future.exception()
            raise asyncio.CancelledError
        return future.result()

    def _ended(self, future: asyncio.Future[Any]) -> None:
        del self._begun[future]

    def close(self) -> None:
        """End the thread, after the work it has."""
        self._pool.shutdown()
