"""Calling plugin methods: plain ones in a thread of the task's own, async ones on the loop."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from connect.errors import ConnectError

T = TypeVar("T")
_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class PluginCalls:
    """Makes the calls of one connector or task, plain ones one after the other in one daemon thread.

    A daemon, unlike an executor's threads, cannot keep the worker from ending while a plugin hangs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def call(self, method: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """The method's result; its exception is raised here."""
        try:
            if inspect.iscoroutinefunction(method):
                return await method(*args)  # type: ignore[no-any-return]
            result: Any = await self._in_thread(lambda: method(*args))
            if inspect.isawaitable(result):
                result = await result
        except SystemExit as e:  # it would end the worker, and everybody else's tasks with it
            raise RuntimeError(f"plugin raised {e!r}") from e
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise TypeError(
                f"{getattr(method, '__qualname__', method)} yields, or returns a generator; a list is wanted"
            )
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread once the call it is in returns; later calls are refused."""
        self._closed = True
        if self._thread is not None:
            self._jobs.put(None)

    def _in_thread(self, job: Callable[[], Any]) -> asyncio.Future[Any]:
        if self._closed:
            raise ConnectError(f"{self._name} is stopped")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((job, loop, future))
        return future

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, loop, future = job
            if future.cancelled():
                continue
            try:
                outcome, failure = function(), None
            except BaseException as e:
                outcome, failure = None, e
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, outcome, failure)


def _settle(future: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(outcome)
    elif isinstance(failure, StopIteration) or not isinstance(failure, Exception):
        # A future refuses to carry the one; sys.exit() and its like would end more than this plugin.
        error = RuntimeError(f"plugin raised {failure!r}")
        error.__cause__ = failure
        future.set_exception(error)
    else:
        future.set_exception(failure)
