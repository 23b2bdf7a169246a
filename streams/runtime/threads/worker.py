"""`Worker`: a thread beside the event loop, so that the loop, and with it heartbeats, goes on meanwhile.

An instance has two: user code runs in one, and stores are opened and restored in the other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from streams.errors import InvalidStateStore, StreamsNotRunning, TooManyQueries

P = ParamSpec("P")
T = TypeVar("T")

QUERIES_MAX = 1000
"""The number of queries that may wait for a thread."""


class Worker:
    """A thread with a queue of jobs. ``name`` is the thread's, and part of the names of its statistics.

    A running task is used only in the worker's thread, or in the event loop while no job runs there.
    """

    def __init__(self, name: str = "worker") -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(1, f"streams-{name}", self._note_thread)
        self.interrupted = threading.Event()
        """Set when the current job is cancelled or takes too long: a job that only waits must end."""
        self.thread_id = 0
        """The identifier of the thread, 0 before its first job."""
        self._started_at: dict[asyncio.Future[Any], float] = {}
        self._queries: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._will_answer = False

    def statistics(self) -> dict[str, float]:
        """Return the number of jobs that run or wait, the age of the oldest, s, and the number of queries.

        Every caller waits for its job. The loop and tasks that are being opened give jobs to the worker, and
        tasks that are being restored and standbys to the restorer.
        """
        name, oldest = self._name, self.oldest_job_seconds
        return {
            f"{name}_jobs": len(self._started_at),
            f"oldest_{name}_job_seconds": oldest,
            f"{name}_queries": len(self._queries),
            f"{name}_queries_max": QUERIES_MAX,
        }

    @property
    def oldest_job_seconds(self) -> float:
        """The age of the oldest job that has not ended, s; 0 if there is none."""
        return time.monotonic() - min(self._started_at.values()) if self._started_at else 0.0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``work`` in the thread. Cancelling waits for its end: until then nobody may use the task."""
        has_begun = cancelled = False

        def begin() -> T:
            nonlocal has_begun
            has_begun = True
            if cancelled:
                self.interrupted.set()
            else:
                self.interrupted.clear()
            return work(*args, **kwargs)

        future = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        self._started_at[future] = time.monotonic()
        future.add_done_callback(self._ended)
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                if has_begun:  # Otherwise the thread runs another job.
                    self.interrupted.set()
                cancelled = True  # The wait goes on; it may be cancelled again.
        if cancelled:
            future.exception()
            raise asyncio.CancelledError
        return future.result()

    # -- queries

    def ask(self, read: Callable[[], T]) -> Future[T]:
        """Call ``read`` in the thread, between two jobs or when a job calls `answer`.

        May be called from any thread. ``read`` must not change anything.

        Raises TooManyQueries; StreamsNotRunning after `close`; InvalidStateStore in the thread itself.
        """
        if threading.get_ident() == self.thread_id:
            raise InvalidStateStore(
                "a function of the topology would wait for itself: let its processor have the store, stores="
            )
        if len(self._queries) >= QUERIES_MAX:
            raise TooManyQueries(QUERIES_MAX)
        future: Future[T] = Future()
        self._queries.append((future, read))
        if not self._will_answer:
            try:
                self._will_answer = True
                self._pool.submit(self.answer)
            except RuntimeError:
                self._will_answer = False
                raise StreamsNotRunning("closed") from None
        return future

    def answer(self) -> None:
        """Answer the waiting queries. Call it in the thread, between two records."""
        self._will_answer = False
        queries = self._queries
        while queries:
            future, read = queries.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(read())
            except Exception as error:
                future.set_exception(error)

    @property
    def has_queries(self) -> bool:
        """True if queries wait."""
        return bool(self._queries)

    def _note_thread(self) -> None:
        self.thread_id = threading.get_ident()

    def _ended(self, future: asyncio.Future[Any]) -> None:
        del self._started_at[future]

    def close(self) -> None:
        """End the thread after its last job."""
        self._pool.shutdown()
