"""Threads beside the event loop, so that it, and with it the heartbeats, goes on meanwhile: one in which user
code runs, and one in which stores are opened and restored.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """One thread; a task that runs is only ever touched in the worker's, or in the loop while nothing runs
    there. ``name`` is the thread's, and begins what it tells of itself.
    """

    def __init__(self, name: str = "worker") -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(1, f"streams-{name}", self._note_thread)
        self.interrupted = threading.Event()
        """Set while nobody waits for what is done any more: work that only waits is to end."""
        self.thread_id = 0
        """Of the thread, once it has had work."""
        self._begun: dict[asyncio.Future[Any], float] = {}

    def statistics(self) -> dict[str, float]:
        """worker_jobs in the thread or waiting for it; seconds since the oldest was handed over.

        Who hands one over waits for it: of the worker's, the loop, and tasks that are about to begin; of the
        restorer's, tasks that are being restored and standbys.
        """
        name, oldest = self._name, self.oldest_job_seconds
        return {f"{name}_jobs": len(self._begun), f"oldest_{name}_job_seconds": oldest}

    @property
    def oldest_job_seconds(self) -> float:
        """Since the oldest job that has not ended was handed over; 0 if there is none."""
        return time.monotonic() - min(self._begun.values()) if self._begun else 0.0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``work`` in the thread. Cancelling waits for its end: nobody may touch the task before."""
        begun = cancelled = False

        def begin() -> T:
            nonlocal begun
            begun = True
            if cancelled:
                self.interrupted.set()
            else:
                self.interrupted.clear()
            return work(*args, **kwargs)

        future = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        self._begun[future] = time.monotonic()
        future.add_done_callback(self._ended)
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                if begun:  # else the thread is at somebody else's work
                    self.interrupted.set()
                cancelled = True  # keep waiting: it may be cancelled again
        if cancelled:
            future.exception()
            raise asyncio.CancelledError
        return future.result()

    def _note_thread(self) -> None:
        self.thread_id = threading.get_ident()

    def _ended(self, future: asyncio.Future[Any]) -> None:
        del self._begun[future]

    def close(self) -> None:
        """End the thread, after the work it has."""
        self._pool.shutdown()
