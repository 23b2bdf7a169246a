"""Standby tasks: state of tasks that run elsewhere, kept up to date from changelogs (KIP-441's warm-ups too).

A standby applies only committed records: later records of a changelog may belong to a commit that fails.
So its state is that of a commit at any time, like the state of a task that ran here. Taking the task over is
a restore from there. Standbys are not updated while tasks are restored here, because restores are urgent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain

from kafka_client import BatchFetcher, Fetched, OffsetAndMetadata, TopicPartition
from kafka_client.errors import MillstreamError, OffsetOutOfRange
from streams.queries.position import Position
from streams.runtime.clients import Clients
from streams.runtime.folder import StateFolder
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.restore import StoreRestore, begin_restores, start_over_after_loss
from streams.runtime.task.environment import Clock
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from streams.state import CachedStore

log = logging.getLogger(__name__)

BUFFER_BYTES = 8 * 1024 * 1024
"""The bound on fetched bytes that are not applied yet, for all standby tasks."""
AS_OF_MS = 60_000
"""How often an idle standby writes to the disk that its state is up to date."""


@dataclass(slots=True)
class StandbyTask:
    """The stores of one standby task. `restores`: progress by changelog, empty until they are open."""

    id: TaskId
    stores: dict[str, CachedStore] = field(default_factory=dict)
    restores: dict[TopicPartition, StoreRestore] = field(default_factory=dict)
    noted_at: int = 0
    position: Position = field(default_factory=Position)
    """The position in the task's inputs at the last commit that was applied completely."""
    committed: Position = field(default_factory=Position)
    """The position in the task's inputs at the last commit."""

    @property
    def remaining(self) -> int:
        """The number of changelog offsets up to the last commit that was read from the group."""
        return sum(each.remaining for each in self.restores.values())

    @property
    def checkpoints(self) -> dict[str, int]:
        """The changelog offset of each store's state."""
        return {each.store.name: each.store.backend.checkpoint or 0 for each in self.restores.values()}


class Standbys:
    """The standby tasks of one instance.

    ``every_ms`` is the interval at which commits are read. ``on_warm`` is called once for each warm-up whose
    lag falls to ``acceptable_lag``.
    """

    def __init__(
        self,
        clients: Clients,
        opener: TaskOpener,
        *,
        folder: StateFolder,
        restorer: Worker,
        clock: Clock,
        every_ms: int,
        acceptable_lag: int,
        on_warm: Callable[[], None],
    ) -> None:
        self._client = clients.client
        self._member = clients.member
        self._opener = opener
        self._folder = folder
        self._restorer = restorer
        self._clock = clock
        self._every = every_ms / 1000
        self._acceptable_lag = acceptable_lag
        self._on_warm = on_warm
        self._fetcher = BatchFetcher(
            clients.client,
            isolation_level="read_committed",
            buffer_max_bytes=BUFFER_BYTES,
            fetch_max_wait_ms=100,
        )
        self._lock = asyncio.Lock()
        self._waits: set[TaskId] = set()
        """Warm-ups whose lag is still above the acceptable one."""
        self._changed = asyncio.Event()
        self._round_task: asyncio.Task[None] | None = None
        self._interrupted = 0
        self.tasks: dict[TaskId, StandbyTask] = {}
        self.updated = 0
        """The number of records applied."""
        self.paused = False

    # -- assignment

    async def assign(self, ids: frozenset[TaskId], warmups: frozenset[TaskId]) -> None:
        """Keep up to date the state of exactly these tasks, which do not run here."""
        async with self._at_rest():
            for id in self.tasks.keys() - ids:
                await self._close(self.tasks.pop(id))
            for id in ids - self.tasks.keys():
                self.tasks[id] = StandbyTask(id)
                if id in warmups:
                    self._waits.add(id)
            self._waits &= warmups
        self._changed.set()

    async def take(self, ids: Collection[TaskId]) -> dict[TaskId, dict[str, CachedStore]]:
        """Remove these tasks from the standbys and return their open stores."""
        async with self._at_rest():
            tasks = [self.tasks.pop(id) for id in ids if id in self.tasks]
            for task in tasks:
                self._forget(task)
        return {task.id: task.stores for task in tasks if task.stores}

    @asynccontextmanager
    async def _at_rest(self) -> AsyncIterator[None]:
        """Cancel the round under way; no round begins until the body ends."""
        self._interrupted += 1
        if self._round_task is not None:
            self._round_task.cancel()
        try:
            async with self._lock:
                yield
        finally:
            self._interrupted -= 1

    def offsets(self) -> dict[TaskId, int]:
        """Return the sum of the changelog offsets of each open standby task."""
        return {id: sum(task.checkpoints.values()) for id, task in self.tasks.items() if task.restores}

    async def close(self) -> None:
        """Close all standby tasks; cancel `run` before."""
        while self.tasks:
            await self._close(self.tasks.popitem()[1])
        await self._fetcher.close()

    async def _close(self, task: StandbyTask) -> None:
        self._forget(task)
        checkpoints, task.restores = task.checkpoints, {}
        for store in task.stores.values():
            await self._restorer.run(store.close)
        if task.stores:
            self._folder.released(task.id, checkpoints)

    def _forget(self, task: StandbyTask) -> None:
        self._waits.discard(task.id)
        for tp in task.restores:
            self._fetcher.remove(tp)

    # -- keeping up

    async def run(self) -> None:
        """Update the standby tasks until cancelled. After an error they are closed and opened again: nothing
        else depends on them.
        """
        backoff = self._client.backoff()
        while True:
            self._changed.clear()
            try:
                async with self._lock:
                    await self._whole_round()
                backoff.reset()
            except MillstreamError as error:
                log.warning("standby tasks stand still, trying again: %s", error)
                async with self._lock:
                    await self._reopen()
                await asyncio.sleep(backoff.next())
            try:
                async with asyncio.timeout(self._every):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _whole_round(self) -> None:
        """Run a round, unless an assignment waits for its end; an assignment cancels it."""
        if self._interrupted:
            return
        round_ = self._round_task = asyncio.create_task(self._round(), name="standbys")
        try:
            await asyncio.wait([round_])
        finally:
            self._round_task = None
            round_.cancel()
            await asyncio.wait([round_])
        if not round_.cancelled():
            round_.result()

    async def _reopen(self) -> None:
        for id, task in self.tasks.items():
            await self._close(task)
            self.tasks[id] = StandbyTask(id)

    async def _round(self) -> None:
        """Bring every standby to the last commit of its task."""
        if not self.tasks or self._has_to_wait():
            return
        await self._extend()
        self._tell_warm()
        while any(task.remaining for task in self.tasks.values()) and not self._has_to_wait():
            try:
                for fetched in await self._fetcher.fetch(timeout_ms=100):
                    await self._apply(fetched)
            except OffsetOutOfRange as lost:
                tp = TopicPartition(lost.topic, lost.partition)
                start = await start_over_after_loss(self._client, tp, self._restores()[tp], self._restorer)
                self._fetcher.seek(tp, start)
            self._note_positions()
            self._tell_warm()
        await self._note()

    async def _apply(self, fetched: Fetched) -> None:
        each = self._restores()[fetched.tp]
        if fetched.position != each.position:
            return
        before = each.restored
        await self._restorer.run(each.apply, fetched)
        self.updated += each.restored - before
        if each.is_done:
            self._fetcher.pause([fetched.tp])

    def _has_to_wait(self) -> bool:
        return self.paused or bool(self._opener.restoring)

    def _restores(self) -> dict[TopicPartition, StoreRestore]:
        return {tp: each for task in self.tasks.values() for tp, each in task.restores.items()}

    async def _extend(self) -> None:
        """Open the tasks that are not open, and read the last commits from the group."""
        for task in self.tasks.values():
            if not task.restores:
                await self._open(task)
        restores = self._restores()
        inputs = await self._opener.inputs(self.tasks)
        committed = await self._committed([*restores, *chain.from_iterable(inputs.values())])
        for tp, each in restores.items():
            each.position = min(each.position, each.end)  # The fetcher may have read beyond the last commit.
            if tp in committed:
                each.end = each.cut = max(each.end, committed[tp].offset)
            if self._fetcher.position(tp) != each.position:
                self._fetcher.seek(tp, each.position)
            if not each.is_done:
                self._fetcher.resume([tp])
        for id, task in self.tasks.items():
            task.committed = Position.before(
                {tp: committed[tp].offset for tp in inputs[id] if tp in committed}
            )
        self._note_positions()

    def _note_positions(self) -> None:
        """Set the position of each task that has applied its last commit completely."""
        for task in self.tasks.values():
            if not task.remaining:
                task.position = task.committed

    async def _open(self, task: StandbyTask) -> None:
        changelogs = await self._opener.changelogs(task.id)
        await self._opener.open_stores(task.id, task.stores)
        committed = await self._committed(changelogs.values())
        cut = {name: committed[tp].offset for name, tp in changelogs.items() if tp in committed}
        sources = self._opener.sources(changelogs, {tp: each.offset for tp, each in committed.items()})
        task.restores = await begin_restores(
            self._client,
            {tp: task.stores[name] for name, tp in changelogs.items()},
            cut,
            worker=self._restorer,
            clock=self._clock,
            with_tail=False,
            sources=sources,
        )
        for tp, each in task.restores.items():
            self._fetcher.add(tp, each.position)
            if each.is_done:
                self._fetcher.pause([tp])

    async def _committed(
        self, changelogs: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the last commits, without waiting for transactions that are about to end."""
        return await self._member.committed(changelogs, require_stable=False)

    async def _note(self) -> None:
        """Write to the disk that up-to-date stores are so: the age of state is counted from then."""
        now = self._clock()
        for task in self.tasks.values():
            if task.restores and not task.remaining and now - task.noted_at > AS_OF_MS:
                task.noted_at = now
                for each in task.restores.values():
                    each.as_of = now
                    await self._restorer.run(each.finish)

    def _tell_warm(self) -> None:
        near = {
            id
            for id in self._waits
            if self.tasks[id].restores and self.tasks[id].remaining <= self._acceptable_lag
        }
        if near:
            self._waits -= near
            self._on_warm()
