"""Tasks that are being opened beside those that run: all at once, each handed over as soon as it is ready.

How many changelogs are read at one time is the opener's to bound. What fails for want of a broker is tried
again; what fails for another reason is kept for `check`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from logd.backoff import Backoff
from streams.runtime.opener import TaskOpener
from streams.runtime.running import RunningTask
from streams.runtime.task import TaskId
from streams.runtime.worker import Worker
from streams.state import CachedStore

log = logging.getLogger(__name__)


class Openings:
    """``take``: gets each opened task; may wait. ``is_retriable``: whether to try again after an error."""

    def __init__(
        self,
        opener: TaskOpener,
        *,
        take: Callable[[RunningTask], Awaitable[None]],
        is_retriable: Callable[[Exception], bool],
        backoff: Callable[[], Backoff],
        restorer: Worker,
    ) -> None:
        self._opener = opener
        self._take = take
        self._is_retriable = is_retriable
        self._backoff = backoff
        self._restorer = restorer
        self._tasks: dict[TaskId, asyncio.Task[None]] = {}
        self._stores: dict[TaskId, dict[str, CachedStore]] = {}
        """Given to `begin`, and not yet taken."""
        self._failure: Exception | None = None

    @property
    def ids(self) -> frozenset[TaskId]:
        """The tasks that are being opened."""
        return frozenset(self._tasks)

    def offsets(self) -> dict[TaskId, int]:
        """How far the state of each is that is being restored: its changelogs' offsets added up."""
        return {
            id: sum(min(each.position, each.cut) for each in self._opener.restoring[id].values())
            for id in self._tasks
            if id in self._opener.restoring
        }

    def check(self) -> None:
        """Raise, once, what an opening failed with."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def begin(self, ids: Iterable[TaskId], stores: Mapping[TaskId, dict[str, CachedStore]]) -> None:
        """Open these tasks. ``stores``: of tasks that have some open here already."""
        self._stores.update(stores)
        for id in ids:
            self._tasks[id] = asyncio.create_task(self._open(id), name=f"open-{id}")

    async def cancel(self, ids: Collection[TaskId] | None = None) -> None:
        """Break off these, or all; returns once nothing of them is open any more."""
        cancelled = {id: task for id, task in self._tasks.items() if ids is None or id in ids}
        for task in cancelled.values():
            task.cancel()
        if cancelled:
            await asyncio.wait(cancelled.values())
        for id in cancelled:  # One that was cancelled before its first step has not done this itself.
            self._tasks.pop(id, None)
            for store in self._stores.pop(id, {}).values():
                await self._restorer.run(store.close)

    async def _open(self, id: TaskId) -> None:
        try:
            running = await self._opened(id, self._stores.pop(id, None))
            try:
                await self._take(running)
            except BaseException:
                await self._restorer.run(running.close, clean=False)
                raise
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._tasks.pop(id, None)

    async def _opened(self, id: TaskId, stores: dict[str, CachedStore] | None) -> RunningTask:
        backoff = self._backoff()
        while True:
            try:
                return await self._opener.open(id, stores)
            except Exception as error:
                if not self._is_retriable(error):
                    raise
                log.warning("task %s does not open, trying again: %s", id, error)
                stores = None  # They are closed.
                await asyncio.sleep(backoff.next())
