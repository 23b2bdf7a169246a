"""Jobs that may block, run in the broker's thread pool, and work that is not left half done.

A batch whose validation would hold up the event loop is validated here:

    larger than the loop's share ──> queued ──> `BatchRules.validate` in the pool ──> appended on the loop

At most VALIDATING_MAX batches of VALIDATING_BYTES_MAX together are in the pool at one time, so that threads
are left for fsync. The queue is bounded by the connections: each waits for the batches of one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from kafka_client.errors import KafkaError

log = logging.getLogger("logd.broker")

Result = TypeVar("Result")

VALIDATING_MAX = 4
"""How many batches are validated, or looked through for a time, in the pool at once."""
VALIDATING_BYTES_MAX = 64 * 1024 * 1024
"""How many bytes they have together, as they came; a single larger one is validated alone."""


class PoolClosed(RuntimeError):
    """An error for a job that comes after the pool was shut down, because the broker stops."""


class JobPool(Executor):
    """A thread pool whose size can be changed while it works (``background.threads``)."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = self._made()
        self._retired: list[ThreadPoolExecutor] = []
        self._jobs: set[Future[Any]] = set()
        """Jobs that wait for a thread, or run in one."""
        self._is_closed = False

    def _made(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="logd")

    def resize(self, threads: int) -> None:
        """Run later jobs in this many threads; the old threads finish the jobs that they have."""
        if threads != self._threads:
            self._pool.shutdown(wait=False)
            self._retired.append(self._pool)
            self._threads = threads
            self._pool = self._made()

    def submit(self, job: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Submit a job, as Executor.submit. Raises PoolClosed after `shutdown`."""
        if self._is_closed:
            raise PoolClosed("the broker stops, and its pool takes no more jobs")
        future = self._pool.submit(job, *args, **kwargs)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        return future

    def statistics(self) -> dict[str, int]:
        """Return the count of jobs that run or wait, and how many run at a time."""
        return {"jobs": len(self._jobs), "running_max": self._threads}

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down, as Executor.shutdown."""
        self._is_closed = True
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
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((turn, size))
        self._begin_next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn had come
                self._running -= 1
                self._running_bytes -= size
                self._begin_next()
            raise

    def _begin_next(self) -> None:
        while self._queue and self._running < VALIDATING_MAX:
            turn, size = self._queue[0]
            if turn.cancelled():
                self._queue.popleft()
                continue
            if self._running and self._running_bytes + size > VALIDATING_BYTES_MAX:
                return
            self._queue.popleft()
            self._running += 1
            self._running_bytes += size
            turn.set_result(None)
