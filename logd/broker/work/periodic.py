"""Work that is repeated on a clock, or whenever there is something to do: each kind by a task of its own.

A round that fails is reported and comes again at its next time: an error of Kafka's or of the disk by a line,
anything else, which nobody expected, by its traceback. So a bug costs one round, and is reported. Work that
must not go on after an error takes its log directory offline itself (`storage.Health`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from kafka_client.errors import KafkaError

PAUSE_AFTER_MISTAKE_S = 1.0
"""An additional pause after an unexpected failure, so that a round that always fails costs little."""

Work = Callable[[], Awaitable[object]]

log = logging.getLogger("logd.broker")


class PeriodicTasks:
    """All rounds of one owner. `stop` ends them, and waits for those that are under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def every(self, interval_ms: float, work: Work) -> None:
        """Run `work` every so often, for the first time after the interval."""
        self.whenever(lambda: asyncio.sleep(interval_ms / 1000), work)

    def whenever(self, due: Work, work: Work) -> None:
        """Run `work` each time that `due` has returned."""
        self.spawn(_repeat(due, work))

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something once that ends with the rest; what it raises is reported."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel everything and wait for its end."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            report(_name(task.get_coro()), error)


async def _repeat(due: Work, work: Work) -> None:
    while True:
        try:
            await due()
            await work()
        except Exception as error:
            report(_name(work), error)
            if not is_expected(error):
                await asyncio.sleep(PAUSE_AFTER_MISTAKE_S)


def is_expected(error: BaseException) -> bool:
    """Return True if the error is Kafka's or the disk's, and not a bug of ours."""
    return isinstance(error, KafkaError | OSError)


def report(doing: str, error: BaseException) -> None:
    """Log what went wrong in the background."""
    if is_expected(error):
        log.error("%s: %s", doing, error)
    else:
        log.error("%s: unexpected %r", doing, error, exc_info=error)


def _name(work: object) -> str:
    return getattr(work, "__qualname__", None) or repr(work)
