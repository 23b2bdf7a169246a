"""Jobs that may block, run in the broker's thread pool, and work that is not left half done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from logd.errors import KafkaError

log = logging.getLogger("logd.broker")

Result = TypeVar("Result")


class JobPool(Executor):
    """A thread pool whose size can be changed while it works (``background.threads``)."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = self._made()
        self._retired: list[ThreadPoolExecutor] = []
        self._jobs: set[Future[Any]] = set()
        """Those that wait for a thread, or are in one."""

    def _made(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="logd")

    def resize(self, threads: int) -> None:
        """Jobs from now on go to so many threads; the ones before are ended by the old ones."""
        if threads != self._threads:
            self._pool.shutdown(wait=False)
            self._retired.append(self._pool)
            self._threads = threads
            self._pool = self._made()

    def submit(self, job: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """As Executor.submit."""
        future = self._pool.submit(job, *args, **kwargs)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        return future

    def statistics(self) -> dict[str, int]:
        """jobs that run or wait, and how many run at one time."""
        return {"jobs": len(self._jobs), "running_max": self._threads}

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As Executor.shutdown."""
        for pool in (*self._retired, self._pool):
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)


async def run_job(executor: Executor, job: Callable[[], Result]) -> Result:
    """Run a job in the pool; one that is cancelled is waited for all the same, since it cannot be stopped."""
    return await to_its_end(asyncio.get_running_loop().run_in_executor(executor, job))


async def to_its_end(work: Awaitable[Result]) -> Result:
    """Await work that goes on to its end when this call is cancelled; only then is CancelledError raised.

    A KafkaError of the work is dropped then, because it was the answer to the cancelled request; any other
    failure is logged.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        failure = None if running.cancelled() else running.exception()
        if failure is not None and not isinstance(failure, KafkaError):
            log.error("what was cancelled failed at its end", exc_info=failure)
        raise
