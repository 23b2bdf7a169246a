"""Standby tasks: state of tasks that run elsewhere, kept up to date from changelogs (KIP-441's warm-ups too).

A standby applies what is committed and no more: what a changelog has behind that may be of a commit that
breaks off. So its state is as of a commit at any time, like that of a task that ran here, and taking the task
over is a restore from there. Standbys rest while tasks are restored here: that has more haste.
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
from streams.runtime.restore.restore import StoreRestore, begin_behind_loss, begin_restores
from streams.runtime.task.environment import Clock
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from streams.state import CachedStore

log = logging.getLogger(__name__)

BUFFER_BYTES = 8 * 1024 * 1024
"""What is fetched ahead for all standby tasks."""
AS_OF_MS = 60_000
"""How often a standby that has nothing to do notes that its state is up to date."""


@dataclass(slots=True)
class StandbyTask:
    """One task's stores here. `restores`: how far each is, by changelog; none until it is opened."""

    id: TaskId
    stores: dict[str, CachedStore] = field(default_factory=dict)
    restores: dict[TopicPartition, StoreRestore] = field(default_factory=dict)
    noted_at: int = 0
    position: Position = field(default_factory=Position)
    """Of the task's inputs, what the stores have of them; at the last commit that was applied whole."""
    committed: Position = field(default_factory=Position)
    """The same of the last commit there is."""

    @property
    def remaining(self) -> int:
        """Offsets to what was committed when it was last looked at."""
        return sum(each.remaining for each in self.restores.values())

    @property
    def checkpoints(self) -> dict[str, int]:
        """The changelog offset each store is as of."""
        return {each.store.name: each.store.backend.checkpoint or 0 for each in self.restores.values()}


class Standbys:
    """One instance's. ``every_ms``: how often commits are asked for. ``on_warm``: called, once for each, when
    a warm-up is no further behind than ``acceptable_lag``.
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
        """Warm-ups that are not near enough yet."""
        self._changed = asyncio.Event()
        self._round_task: asyncio.Task[None] | None = None
        self._interrupted = 0
        self.tasks: dict[TaskId, StandbyTask] = {}
        self.updated = 0
        """Records applied."""
        self.paused = False

    # -- changes of hands

    async def assign(self, ids: frozenset[TaskId], warmups: frozenset[TaskId]) -> None:
        """Keep the state of exactly these tasks, which do not run here."""
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
        """The stores of those of these tasks that are open here; they are no standbys any more."""
        async with self._at_rest():
            taken = [self.tasks.pop(id) for id in ids if id in self.tasks]
            for task in taken:
                self._forget(task)
        return {task.id: task.stores for task in taken if task.stores}

    @asynccontextmanager
    async def _at_rest(self) -> AsyncIterator[None]:
        """Break off the round under way; none begins until this is left."""
        self._interrupted += 1
        if self._round_task is not None:
            self._round_task.cancel()
        try:
            async with self._lock:
                yield
        finally:
            self._interrupted -= 1

    def offsets(self) -> dict[TaskId, int]:
        """Of those that are open, how far the state is: the changelogs' offsets added up."""
        return {id: sum(task.checkpoints.values()) for id, task in self.tasks.items() if task.restores}

    async def close(self) -> None:
        """Close all of them; cancel `run` before."""
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
        """Until cancelled. An error closes the standbys, and they are tried again: they are no condition for
        anything else.
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
        """A round, unless somebody waits for it to end, or until then."""
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
                start = await begin_behind_loss(self._client, tp, self._restores()[tp], self._restorer)
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
        """Open what is not, and ask the group for the last commits."""
        for task in self.tasks.values():
            if not task.restores:
                await self._open(task)
        restores = self._restores()
        inputs = await self._opener.inputs(self.tasks)
        committed = await self._committed([*restores, *chain.from_iterable(inputs.values())])
        for tp, each in restores.items():
            each.position = min(each.position, each.end)  # It may have read on, beyond what it was to apply.
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
        """What a commit has of the inputs is in the stores once they have all of the commit."""
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
        """Their last commits. One that is about to happen is not waited for: there is always one."""
        return await self._member.committed(changelogs, require_stable=False)

    async def _note(self) -> None:
        """Have what is up to date say so on the disk: how old state may be counts from there."""
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
