"""Threads beside the event loop, so that it, and with it the heartbeats, goes on meanwhile: one in which user
code runs, and one in which stores are opened and restored.
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
"""So many queries may wait for a thread."""


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
        self._asked: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._will_answer = False

    def statistics(self) -> dict[str, float]:
        """worker_jobs in the thread or waiting for it; seconds since the oldest was handed over.

        Who hands one over waits for it: of the worker's, the loop, and tasks that are about to begin; of the
        restorer's, tasks that are being restored and standbys.
        """
        name, oldest = self._name, self.oldest_job_seconds
        return {
            f"{name}_jobs": len(self._begun),
            f"oldest_{name}_job_seconds": oldest,
            f"{name}_queries": len(self._asked),
            f"{name}_queries_max": QUERIES_MAX,
        }

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

    # -- queries

    def ask(self, read: Callable[[], T]) -> Future[T]:
        """Have ``read`` called in the thread, between two of its jobs or where a job calls `answer`. From any
        thread; unlike with `run` nothing waits for its end if nobody does. It must not change anything.

        Raises TooManyQueries, StreamsNotRunning after `close`, and InvalidStateStore in the thread itself.
        """
        if threading.get_ident() == self.thread_id:
            raise InvalidStateStore(
                "a function of the topology would wait for itself: let its processor have the store, stores="
            )
        if len(self._asked) >= QUERIES_MAX:
            raise TooManyQueries(QUERIES_MAX)
        future: Future[T] = Future()
        self._asked.append((future, read))
        if not self._will_answer:
            try:
                self._will_answer = True
                self._pool.submit(self.answer)
            except RuntimeError:
                self._will_answer = False
                raise StreamsNotRunning("closed") from None
        return future

    def answer(self) -> None:
        """Answer the queries that wait; in the thread, while no record is in hand."""
        self._will_answer = False
        asked = self._asked
        while asked:
            future, read = asked.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(read())
            except Exception as error:
                future.set_exception(error)

    @property
    def has_queries(self) -> bool:
        """Whether queries wait."""
        return bool(self._asked)

    def _note_thread(self) -> None:
        self.thread_id = threading.get_ident()

    def _ended(self, future: asyncio.Future[Any]) -> None:
        del self._begun[future]

    def close(self) -> None:
        """End the thread, after the work it has."""
        self._pool.shutdown()
