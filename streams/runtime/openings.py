"""Tasks that are being opened beside those that run: all at once, each handed over as soon as it is ready.

The opener bounds the number of changelogs that are read at the same time. An opening that fails with a
retriable error is tried again; `check` raises other errors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from kafka_client import TopicPartition
from kafka_client.backoff import Backoff
from streams.runtime.opener import TaskOpener
from streams.runtime.task.running import RunningTask
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from streams.state import CachedStore

log = logging.getLogger(__name__)

T = TypeVar("T")


class Openings:
    """The tasks that are being opened.

    ``prepare`` is awaited before tasks are opened. ``take`` gets each opened task, and may wait.
    ``is_retriable`` returns True for errors after which to try again.
    """

    def __init__(
        self,
        opener: TaskOpener,
        *,
        prepare: Callable[[], Awaitable[None]],
        take: Callable[[RunningTask], Awaitable[None]],
        is_retriable: Callable[[Exception], bool],
        backoff: Callable[[], Backoff],
        restorer: Worker,
    ) -> None:
        self._opener = opener
        self._prepare = prepare
        self._take = take
        self._is_retriable = is_retriable
        self._backoff = backoff
        self._restorer = restorer
        self._prepared: asyncio.Task[bool] | None = None
        self._tasks: dict[TaskId, asyncio.Task[None]] = {}
        self._stores: dict[TaskId, dict[str, CachedStore]] = {}
        """The open stores passed to `begin` of tasks whose opening has not started yet."""
        self._failure: Exception | None = None

    @property
    def ids(self) -> frozenset[TaskId]:
        """The tasks that are being opened."""
        return frozenset(self._tasks)

    def offsets(self) -> dict[TaskId, int]:
        """Return the sum of the changelog offsets of each task whose state is already here."""
        waiting = {
            id: sum(each.backend.checkpoint or 0 for each in stores.values())
            for id, stores in self._stores.items()
        }
        return waiting | {
            id: sum(min(each.position, each.cut) for each in self._opener.restoring[id].values())
            for id in self._tasks
            if id in self._opener.restoring
        }

    def check(self) -> None:
        """Raise, once, the error of an opening that failed."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def assign(self, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> None:
        """Set the input partitions of tasks that are opened from now on."""
        self._opener.assigned = inputs

    def begin(self, ids: Iterable[TaskId], stores: Mapping[TaskId, dict[str, CachedStore]]) -> None:
        """Open these tasks. ``stores``: the stores of tasks that are open here already."""
        self._stores.update(stores)
        if self._prepared is None or self._prepared.done():
            self._prepared = asyncio.create_task(self._until_prepared(), name="prepare-tasks")
        for id in ids:
            self._tasks[id] = asyncio.create_task(self._open(id, self._prepared), name=f"open-{id}")

    async def cancel(self, ids: Collection[TaskId] | None = None) -> None:
        """Cancel these openings, or all, and wait until their stores are closed."""
        chosen = [id for id in self._tasks if ids is None or id in ids]
        cancelled: list[asyncio.Task[Any]] = [self._tasks[id] for id in chosen]
        if ids is None and self._prepared is not None:
            cancelled.append(self._prepared)
        for task in cancelled:
            task.cancel()
        if cancelled:
            await asyncio.wait(cancelled)
        for id in chosen:  # A coroutine that is cancelled before its first step does not remove itself.
            self._tasks.pop(id, None)
        for id in [id for id in self._stores if ids is None or id in ids]:
            for store in self._stores.pop(id).values():
                await self._restorer.run(store.close)

    async def _until_prepared(self) -> bool:
        """Return True if tasks may be opened; if not, `check` raises the reason."""
        try:
            await self._retrying("tasks are not opened yet", self._prepare)
        except Exception as error:
            self._failure = self._failure or error
            return False
        return True

    async def _open(self, id: TaskId, prepared: asyncio.Task[bool]) -> None:
        def attempt() -> Awaitable[RunningTask]:
            return self._opener.open(id, self._stores.pop(id, None))  # A failed attempt closes them.

        try:
            if not await asyncio.shield(prepared):
                return
            running = await self._retrying(f"task {id} does not open", attempt)
            try:
                await self._take(running)
            except BaseException:
                await self._restorer.run(running.close, clean=False)
                raise
        except Exception as error:
            self._failure = self._failure or error
        finally:
            self._tasks.pop(id, None)

    async def _retrying(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        backoff = self._backoff()
        while True:
            try:
                return await attempt()
            except Exception as error:
                if not self._is_retriable(error):
                    raise
                log.warning("%s, trying again: %s", what, error)
                await asyncio.sleep(backoff.next())
