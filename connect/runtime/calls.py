"""Calls plugin methods: plain ones in a thread of the task's own, async ones on the loop."""

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
A = TypeVar("A")
_Job = tuple[int, Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]
CALLS_MAX = 8
"""Calls running or waiting for the thread. There is usually one: more queue up only after abandoned calls
that do not return.
"""


class PluginCalls:
    """The plugin calls of one connector or task; plain methods run one at a time in one daemon thread.

    Unlike an executor's threads, a daemon thread does not keep the worker alive while a plugin hangs.
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
        self._started_at: dict[int, float] = {}
        """Start time of each call that has not returned."""
        self._concurrent: list[PluginCalls] = []
        """Interrupting calls, some of which may not have returned either."""
        self.cpu_seconds = 0.0
        """The CPU time of plain methods, in the task's own thread."""

    def statistics(self) -> dict[str, float]:
        """Return the number of calls that have not returned, abandoned or not, its bound and the oldest's
        age.
        """
        started = self._not_returned()
        oldest = time.monotonic() - min(started) if started else 0.0
        return {"calls": len(started), "calls_max": CALLS_MAX, "oldest_call_seconds": oldest}

    async def call(self, method: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """Call the method and return its result. Raises the method's exception."""
        try:
            if inspect.iscoroutinefunction(method):
                with self._counted():
                    return await method(*args)  # type: ignore[no-any-return]
            result: Any = await self._submit(lambda: method(*args))
            if inspect.isawaitable(result):
                with self._counted():
                    result = await result
        except asyncio.CancelledError as e:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            # Nobody has cancelled the call: a cancel scope of the plugin's leaks. It would end the caller's
            # asyncio task without a trace.
            raise RuntimeError(f"plugin raised {e!r}") from e
        except Exception:
            raise
        except BaseException as e:
            # SystemExit and KeyboardInterrupt would end the worker with all its connectors, others the
            # caller's asyncio task without a trace.
            raise RuntimeError(f"plugin raised {e!r}") from e
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise TypeError(
                f"{getattr(method, '__qualname__', method)} yields, or returns a generator; a list is wanted"
            )
        return result  # type: ignore[no-any-return]

    async def call_prepared(self, method: Callable[[A], T | Awaitable[T]], prepare: Callable[[], A]) -> None:
        """Call the method with the result of `prepare`, which runs in the thread; not with an empty one.

        Both are one job for the thread if the method is plain.
        """
        if inspect.iscoroutinefunction(method):
            if argument := await self.call(prepare):
                await self.call(method, argument)
            return

        def prepare_and_call() -> T | Awaitable[T] | None:
            argument = prepare()
            return method(argument) if argument else None

        prepare_and_call.__qualname__ = getattr(method, "__qualname__", prepare_and_call.__qualname__)
        await self.call(prepare_and_call)

    async def call_then(self, method: Callable[[], T | Awaitable[T]], then: Callable[[T], A]) -> A:
        """Call the method and return `then(result)`, computed in the thread.

        Both are one job for the thread if the method is plain.
        """
        if inspect.iscoroutinefunction(method):
            return await self.call(then, await self.call(method))
        is_done = False

        def call_and_go_on() -> Any:
            nonlocal is_done
            result = method()
            if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
                return result
            is_done = True
            return then(result)

        call_and_go_on.__qualname__ = getattr(method, "__qualname__", call_and_go_on.__qualname__)
        outcome: Any = await self.call(call_and_go_on)
        return outcome if is_done else await self.call(then, outcome)

    async def call_concurrently(self, method: Callable[..., T | Awaitable[T]], *args: Any) -> T:
        """Call a method in a thread of its own while another call runs; for methods that interrupt it."""
        concurrent = PluginCalls(f"{self._name}-concurrent")
        self._concurrent = [*(each for each in self._concurrent if each.is_busy), concurrent]
        try:
            return await concurrent.call(method, *args)
        finally:
            concurrent.close()

    async def wait_idle(self, seconds: float) -> bool:
        """Wait at most `seconds` for running plain methods. Return True if all have returned."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        return self._idle.is_set()

    @property
    def is_busy(self) -> bool:
        """True if a plain method is running or queued."""
        return not self._idle.is_set()

    @property
    def is_closed(self) -> bool:
        """True if no more calls are made."""
        return self._closed

    def close(self) -> None:
        """End the thread once its current call returns; later calls raise ConnectError."""
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
            del self._started_at[number]

    def _begin(self) -> int:
        if len(self._not_returned()) >= CALLS_MAX:
            raise ConnectError(
                f"{self._name}: {CALLS_MAX} calls of the plugin have not returned, no more are made"
            )
        number = next(self._numbers)
        self._started_at[number] = time.monotonic()
        return number

    def _not_returned(self) -> list[float]:
        return [*self._started_at.values(), *(at for each in self._concurrent for at in each._not_returned())]

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            number, function, loop, future = job
            outcome: Any = None
            failure: BaseException | None = None
            if not future.cancelled():
                began = time.thread_time()
                try:
                    outcome = function()
                except BaseException as e:
                    failure = e
                self.cpu_seconds += time.thread_time() - began
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._returned, number, future, outcome, failure)

    def _returned(
        self, number: int, future: asyncio.Future[Any], outcome: Any, failure: BaseException | None
    ) -> None:
        del self._started_at[number]
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
