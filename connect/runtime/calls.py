"""Calling plugin methods: plain ones in a thread of the task's own, async ones on the loop."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from connect.errors import ConnectError

T = TypeVar("T")
_Job = tuple[int, Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]
CALLS_MAX = 8
"""Calls under way or waiting for the thread. Mostly it is one: more come only behind calls that were given up
and do not return.
"""


class PluginCalls:
    """Makes the calls of one connector or task, plain ones one after the other in one daemon thread.

    A daemon, unlike an executor's threads, cannot keep the worker from ending while a plugin hangs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._in_thread = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._numbers = itertools.count()
        self._begun: dict[int, float] = {}
        """When each call that has not returned was made."""
        self._beside: list[PluginCalls] = []
        """Of these some may not have returned either."""

    def statistics(self) -> dict[str, float]:
        """calls that have not returned, given up or not, and their bound; the age of the oldest."""
        begun = self._not_returned()
        oldest = time.monotonic() - min(begun) if begun else 0.0
        return {"calls": len(begun), "calls_max": CALLS_MAX, "oldest_call_seconds": oldest}

    async def call(self, method: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """The method's result; its exception is raised here."""
        try:
            if inspect.iscoroutinefunction(method):
                with self._counted():
                    return await method(*args)  # type: ignore[no-any-return]
            result: Any = await self._submit(lambda: method(*args))
            if inspect.isawaitable(result):
                with self._counted():
                    result = await result
        except SystemExit as e:  # it would end the worker with all its connectors
            raise RuntimeError(f"plugin raised {e!r}") from e
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise TypeError(
                f"{getattr(method, '__qualname__', method)} yields, or returns a generator; a list is wanted"
            )
        return result  # type: ignore[no-any-return]

    async def call_beside(self, method: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """The same in a thread of its own, beside a call under way: for methods that may break that off."""
        beside = PluginCalls(f"{self._name}-beside")
        self._beside = [*(each for each in self._beside if each.is_busy), beside]
        try:
            return await beside.call(method, *args)
        finally:
            beside.close()

    async def wait_idle(self, seconds: float) -> bool:
        """Wait for plain methods under way to return; whether they have."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        return self._idle.is_set()

    @property
    def is_busy(self) -> bool:
        """Whether a plain method is under way, or was when the calls were closed."""
        return not self._idle.is_set()

    def close(self) -> None:
        """End the thread once the call it is in returns; later calls are refused."""
        self._closed = True
        if self._thread is not None:
            self._jobs.put(None)

    def _submit(self, job: Callable[[], Any]) -> asyncio.Future[Any]:
        if self._closed:
            raise ConnectError(f"{self._name} is stopped")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        number = self._begin()
        self._in_thread += 1
        self._idle.clear()
        self._jobs.put((number, job, loop, future))
        return future

    @contextmanager
    def _counted(self) -> Iterator[None]:
        number = self._begin()
        try:
            yield
        finally:
            del self._begun[number]

    def _begin(self) -> int:
        if len(self._not_returned()) >= CALLS_MAX:
            raise ConnectError(
                f"{self._name}: {CALLS_MAX} calls of the plugin have not returned, no more are made"
            )
        number = next(self._numbers)
        self._begun[number] = time.monotonic()
        return number

    def _not_returned(self) -> list[float]:
        return [*self._begun.values(), *(at for each in self._beside for at in each._not_returned())]

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            number, function, loop, future = job
            outcome: Any = None
            failure: BaseException | None = None
            if not future.cancelled():
                try:
                    outcome = function()
                except BaseException as e:
                    failure = e
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._returned, number, future, outcome, failure)

    def _returned(
        self, number: int, future: asyncio.Future[Any], outcome: Any, failure: BaseException | None
    ) -> None:
        del self._begun[number]
        self._in_thread -= 1
        if not self._in_thread:
            self._idle.set()
        _set_outcome(future, outcome, failure)


def _set_outcome(future: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(outcome)
    elif isinstance(failure, StopIteration) or not isinstance(failure, Exception):
        # A future does not take a StopIteration; a SystemExit would end the worker with all its connectors.
        error = RuntimeError(f"plugin raised {failure!r}")
        error.__cause__ = failure
        future.set_exception(error)
    else:
        future.set_exception(failure)
