"""An event loop whose time passes at once when there is nothing to do, in an order of the seed's.

All machines' processes share it. A handle belongs to the life in whose context it was made (`machine`). So a
process can be killed, or stand still, at any moment between two handles. Jobs of thread pools run here as
well, each a little later, in any order. A job runs whole, as the smallest step.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from tests.faults.cluster_simulation.machine import LIFE, Life

if TYPE_CHECKING:
    from tests.faults.cluster_simulation.network import Network

JOB_S = (0.0, 0.0, 0.0002, 0.001, 0.005)
"""How much later a job of a thread pool may run."""
HANDLES_AT_ONE_TIME_MAX = 100_000


class StandsStill(AssertionError):
    """Time does not pass any more: somebody does the same again and again, or nobody has anything to do."""


class LoopPool(Executor):
    """In place of `logd.broker.work.pool.JobPool`: what is submitted runs in the loop."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def resize(self, threads: int) -> None:
        """See `JobPool.resize`."""
        self._threads = threads

    def statistics(self) -> dict[str, int]:
        """See `JobPool.statistics`."""
        return {"jobs": 0, "running_max": self._threads}

    def submit(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `Executor.submit`."""
        loop = asyncio.get_running_loop()
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(job(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        loop.run_in_executor(None, run)
        return future


class SimulatedLoop(asyncio.BaseEventLoop):
    """`network` is where it connects and listens. `reported` is what asyncio would have told in the log."""

    _ready: deque[asyncio.Handle]

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.network: Network
        self.reported: list[dict[str, Any]] = []
        self.handles = 0
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = itertools.count()
        self._handles_now = 0
        """Run since time has passed last."""
        self.set_exception_handler(lambda _, context: self.reported.append(context))

    def time(self) -> float:
        """Seconds since the history began."""
        return self._now

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """See `asyncio.AbstractEventLoop`. Of two for the same time the first comes first."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        while timers and timers[0][2]._cancelled:  # type: ignore[attr-defined]
            heapq.heappop(timers)
        if not ready:
            if not timers:
                raise StandsStill("everybody waits for ever")
            self._now = max(self._now, timers[0][0])
            self._handles_now = 0
        now = self._now
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            self._run(ready.popleft())

    def _run(self, handle: asyncio.Handle) -> None:
        if handle._cancelled:  # type: ignore[attr-defined]
            return
        life: Life | None = handle._context.get(LIFE)  # type: ignore[attr-defined]
        if life is not None and life.is_halted:
            life.delayed_handles.append(handle)
            return
        self.handles += 1
        self._handles_now += 1
        if self._handles_now > HANDLES_AT_ONE_TIME_MAX:
            raise StandsStill(f"at {self._now:.3f} s, with {handle!r}")
        handle._run()

    def resume(self, life: Life) -> None:
        """Let a stopped life go on, with the handles that arrived meanwhile."""
        life.is_halted = False
        self._ready.extend(life.delayed_handles)
        life.delayed_handles = []

    def keep(self, life: Life) -> None:
        """Have what a dead life has begun go on no more, not even to its `finally`."""
        life.references += asyncio.all_tasks(self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """See `asyncio.AbstractEventLoop`."""
        future: asyncio.Future[Any] = self.create_future()
        self.call_later(self.rng.choice(JOB_S), self._work, future, func, args)
        return future

    @staticmethod
    def _work(future: asyncio.Future[Any], func: Callable[..., Any], args: Any) -> None:
        try:
            result = func(*args)
        except BaseException as error:
            if not future.cancelled():
                future.set_exception(error)
        else:
            if not future.cancelled():
                future.set_result(result)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **_: object
    ) -> tuple[asyncio.Transport, Any]:
        """See `asyncio.AbstractEventLoop`."""
        return await self.network.connect(protocol_factory, (host, port))
