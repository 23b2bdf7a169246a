"""`LoopCoroutines`: the coroutines of asynchronous nodes, in the application's event loop.

The tasks' thread (`Worker`) starts calls and collects their results. One wake-up of the loop starts many.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from types import FrameType
from typing import Any

from streams.errors import TaskLost
from streams.processors.coroutines import Call, Context
from streams.runtime.threads.contexts import Contexts

LOOK_S = 0.05
"""How often a thread that waits for calls checks if it was interrupted."""

_Started = tuple[Call, deque[Call]]


class LoopCoroutines:
    """The coroutines of an instance's tasks. Create it in the event loop. ``interrupted`` ends `wait`."""

    def __init__(self, interrupted: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._interrupted = interrupted
        self._new: deque[_Started] = deque()
        self._loop_is_told = False
        self._running: dict[Call, asyncio.Task[Any]] = {}
        self._begun_at: dict[Call, float] = {}
        self._contexts = Contexts()
        self._one_is_over = threading.Event()
        self._is_waited_for = False
        self.arrived = asyncio.Event()
        """Set when a call is over; cleared before results are collected."""

    # -- in the tasks' thread

    def start(self, call: Call, over: deque[Call]) -> None:
        """Run a call in the loop; it is appended to ``over`` afterwards."""
        self._new.append((call, over))
        if not self._loop_is_told:
            self._loop_is_told = True
            self._loop.call_soon_threadsafe(self._start_new)

    def wait(self, over: deque[Call]) -> None:
        """Block until ``over`` has a call. Raises TaskLost if the thread is interrupted."""
        self._is_waited_for = True
        try:
            while not over:
                self._one_is_over.clear()
                if over:
                    return
                if self._interrupted.is_set():
                    raise TaskLost("what was in flight is given up: it took too long for a commit")
                self._one_is_over.wait(LOOK_S)
        finally:
            self._is_waited_for = False

    def give_up(self, calls: Iterable[Call]) -> None:
        """Cancel these calls."""
        cancelled = list(calls)
        if cancelled:
            self._loop.call_soon_threadsafe(self._cancel, cancelled)

    # -- in the loop

    def _start_new(self) -> None:
        self._loop_is_told = False
        while self._new:
            call, over = self._new.popleft()
            self._begun_at[call] = time.monotonic()
            task = self._running[call] = self._loop.create_task(call.work(), name=call.node)
            task.add_done_callback(partial(self._ended, call, over))

    def _ended(self, call: Call, over: deque[Call], task: asyncio.Task[Any]) -> None:
        del self._running[call], self._begun_at[call]
        if task.cancelled():
            call.error = RuntimeError("the coroutine was cancelled")
        elif (error := task.exception()) is None:
            call.result = task.result()
        else:
            call.error = error if isinstance(error, Exception) else RuntimeError(repr(error))
        call.is_over = True
        over.append(call)
        self._one_is_over.set()
        self.arrived.set()

    def _cancel(self, calls: list[Call]) -> None:
        self._start_new()
        for call in calls:
            if call in self._running:
                self._running[call].cancel()

    async def entered(self, node: str, context: Context) -> Any:
        """Enter the node's context at the first call, and return its value. `close` leaves the context."""
        return await self._contexts.entered(node, context)

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Cancel the running calls, then leave the contexts."""
        running = list(self._running.values())
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)
        await self._contexts.close()

    # -- what other parts read

    @property
    def is_busy(self) -> bool:
        """True if a call runs, or a result may not have been collected yet."""
        return bool(self._running or self._new or self.arrived.is_set())

    @property
    def oldest_call_seconds(self) -> float:
        """The age of the oldest running call, s; 0 if there is none."""
        return time.monotonic() - min(self._begun_at.values()) if self._begun_at else 0.0

    @property
    def is_waited_for(self) -> bool:
        """True if the tasks' thread waits for a running call."""
        return self._is_waited_for and bool(self._begun_at)

    def oldest_told(self) -> str:
        """Return a description of the oldest running call, "" if there is none."""
        if not self._begun_at:
            return ""
        return f"{self.where_it_hangs()}, under way for {self.oldest_call_seconds:.1f} s"

    def where_it_hangs(self) -> str:
        """Return the node and the line of the program at which the oldest call waits. A call must run."""
        call = min(self._begun_at, key=self._begun_at.__getitem__)
        frames = _frames(self._running[call].get_coro())
        # The first frame of the user's code; the frames above it are Millstream's.
        frame = next((each for each in frames if not _is_ours(each)), None)
        if frame is None:
            entering = self._contexts.is_entering(call.node)
            return f"node {call.node}" + (", whose context is not entered yet" if entering else "")
        code = frame.f_code
        return f"node {call.node} ({code.co_filename}, line {frame.f_lineno}, in {code.co_name})"

    def statistics(self) -> dict[str, float]:
        """Return the number of running and new calls, and the age of the oldest, s."""
        return {"calls": len(self._running) + len(self._new), "oldest_call_seconds": self.oldest_call_seconds}


def _frames(coroutine: Any) -> list[FrameType]:
    """Return the frames of a waiting coroutine and of those it waits for, the outermost first."""
    frames = []
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        frames.append(frame)
        coroutine = coroutine.cr_await
    return frames


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("streams.")
