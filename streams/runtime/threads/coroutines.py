"""`LoopCoroutines`: the coroutines of asynchronous nodes, in the application's event loop.

The tasks' thread (`Worker`) starts calls and takes what they gave; the loop is woken once for many of them.
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
"""How often a thread that waits for calls looks whether it is to go on waiting."""

_Started = tuple[Call, deque[Call]]


class LoopCoroutines:
    """Of all tasks of an instance. Made in the event loop; ``interrupted`` ends waits in their thread."""

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
        """Set when a call is over; who collects results clears it before."""

    # -- in the tasks' thread

    def start(self, call: Call, over: deque[Call]) -> None:
        """Run it in the loop; it is put into ``over`` afterwards."""
        self._new.append((call, over))
        if not self._loop_is_told:
            self._loop_is_told = True
            self._loop.call_soon_threadsafe(self._start_new)

    def wait(self, over: deque[Call]) -> None:
        """Block until there is something in ``over``; TaskLost if nobody waits for this thread any more."""
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
        """Cancel them: nobody waits for them any more."""
        given_up = list(calls)
        if given_up:
            self._loop.call_soon_threadsafe(self._cancel, given_up)

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
        """What the node's context gives: it is entered once, and left by `close`."""
        return await self._contexts.entered(node, context)

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Cancel what runs, then leave the contexts."""
        running = list(self._running.values())
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)
        await self._contexts.close()

    # -- what others ask

    @property
    def is_busy(self) -> bool:
        """Whether a result is here that may not have been collected, or on its way."""
        return bool(self._running or self._new or self.arrived.is_set())

    @property
    def oldest_call_seconds(self) -> float:
        """Since the oldest call that is not over was started; 0 if there is none."""
        return time.monotonic() - min(self._begun_at.values()) if self._begun_at else 0.0

    @property
    def is_waited_for(self) -> bool:
        """Whether the tasks' thread waits for a call that runs: then that is what it hangs in."""
        return self._is_waited_for and bool(self._begun_at)

    def oldest_told(self) -> str:
        """The oldest call in words, "" if there is none."""
        if not self._begun_at:
            return ""
        return f"{self.where_it_hangs()}, under way for {self.oldest_call_seconds:.1f} s"

    def where_it_hangs(self) -> str:
        """The node, and the line of the program, at which the oldest call waits; there is one."""
        call = min(self._begun_at, key=self._begun_at.__getitem__)
        frames = _frames(self._running[call].get_coro())
        # The first that is the user's: above it there are only ours.
        frame = next((each for each in frames if not _is_ours(each)), None)
        if frame is None:
            entering = self._contexts.is_entering(call.node)
            return f"node {call.node}" + (", whose context is not entered yet" if entering else "")
        code = frame.f_code
        return f"node {call.node} ({code.co_filename}, line {frame.f_lineno}, in {code.co_name})"

    def statistics(self) -> dict[str, float]:
        """Calls that are not over; seconds since the oldest was started."""
        return {"calls": len(self._running) + len(self._new), "oldest_call_seconds": self.oldest_call_seconds}


def _frames(coroutine: Any) -> list[FrameType]:
    """Of a coroutine that waits, and of those it waits for, the outermost first."""
    frames = []
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        frames.append(frame)
        coroutine = coroutine.cr_await
    return frames


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("streams.")
