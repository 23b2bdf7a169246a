"""Opening tasks: their stores, their state restored to the last commit, their inputs from there on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import partial

from kafka_client import (
    Admin,
    IsolationLevel,
    ListedOffset,
    OffsetAndMetadata,
    TopicPartition,
)
from streams.errors import StateError, StreamsError
from streams.graph import SourceNode
from streams.runtime.application import Application
from streams.runtime.assignment.protocol import changelogs_of, count_partitions
from streams.runtime.clients import Clients
from streams.runtime.commit.positions import Cut, read_cut
from streams.runtime.folder import StateFolder
from streams.runtime.restore.restore import Source, StoreRestore, restore_stores
from streams.runtime.restore.restore_listener import RestoreListeners
from streams.runtime.restore.source_stores import sources_of
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.running import RunningTask
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.runtime.threads.threads import Threads
from streams.state import CachedStore, RocksMemory, open_store

log = logging.getLogger(__name__)

RESTORES_MAX = 4
"""The number of tasks whose changelogs are read at the same time."""

Inputs = dict[TopicPartition, SourceNode]


class TaskOpener:
    """A factory of `RunningTask`s, for one instance."""

    def __init__(
        self,
        application: Application,
        clients: Clients,
        threads: Threads,
        *,
        folder: StateFolder,
        memory: RocksMemory,
        listeners: RestoreListeners,
        environment: TaskEnvironment,
    ) -> None:
        self._client = clients.client
        self._member = clients.member
        self._topology = application.topology
        self._names = application.names
        self._config = application.config
        self._clock = application.clock
        self._folder = folder
        self._worker = threads.worker
        self._restorer = threads.restorer
        self._environment = environment
        self._settings = TaskSettings.of(application.config)
        self._memory = memory
        self._room = asyncio.Semaphore(RESTORES_MAX)
        self.listeners = listeners
        self.restoring: dict[TaskId, Mapping[TopicPartition, StoreRestore]] = {}
        """The restores of the tasks that are being opened, by changelog."""
        self.assigned: Mapping[TaskId, frozenset[TopicPartition]] = {}
        """The input partitions of the tasks that are to run here."""

    async def open(self, id: TaskId, stores: dict[str, CachedStore] | None = None) -> RunningTask:
        """Open the task; if that fails, nothing stays open.

        ``stores``: stores of the task that are open already; the task owns them from now on.
        """
        stores = {} if stores is None else stores
        try:
            counts = await count_partitions(self._client, self._topology)
            return await self._open(id, counts, stores)
        except BaseException:
            await self._restorer.run(_close_stores, stores)
            raise

    def _inputs(self, id: TaskId, counts: Mapping[str, int]) -> Inputs:
        return {
            TopicPartition(self._names.topic(topic), id.partition): source
            for source in self._topology.subtopologies[id.subtopology].sources
            for topic in source.topics
            if self._is_input(id, topic, counts)
        }

    def _is_input(self, id: TaskId, topic: str, counts: Mapping[str, int]) -> bool:
        """Return True if the task reads the topic. The leader decides: it may see new topics first."""
        if (assigned := self.assigned.get(id)) is not None:
            return TopicPartition(self._names.topic(topic), id.partition) in assigned
        return id.partition < counts[topic]

    async def _open(
        self, id: TaskId, counts: Mapping[str, int], stores: dict[str, CachedStore]
    ) -> RunningTask:
        inputs = self._inputs(id, counts)
        changelogs = changelogs_of(id, self._topology, self._names, counts)
        committed = await self._member.committed([*inputs, *changelogs.values()])
        cut = read_cut(committed, inputs)
        self._check_kinds(cut, changelogs)
        restores: dict[TopicPartition, StoreRestore] = {}
        self.restoring[id] = restores
        try:
            await self.open_stores(id, stores)
            sources = self.sources(changelogs, await self._reached(changelogs, committed))
            cuts, ends = await restore_stores(
                self._client,
                {changelogs[name]: stores[name] for name in changelogs},
                cut.changelogs,
                worker=self._restorer,
                clock=self._clock,
                exactly_once=self._config.exactly_once,
                restores=restores,
                observer=self.listeners,
                room=self._room,
                sources=sources,
            )
            task = await self._task(id, stores, inputs, cut, committed)
        finally:
            del self.restoring[id]
        restored = sum(each.restored for each in restores.values())
        written = {name: tp for name, tp in changelogs.items() if name not in sources}
        return RunningTask(
            task,
            written,
            {name: cuts[name] for name in written},
            {name: ends[name] for name in written},
            released=partial(self._folder.released, id),
            restored=restored,
            source_stores={name: changelogs[name] for name in sources},
        )

    def _check_kinds(self, cut: Cut, changelogs: Mapping[str, TopicPartition]) -> None:
        """Raise StateError if an earlier topology had a store of another kind under one of these names.

        This store could misread the keys of the old one, and would lose the changelog's content bit by bit.
        """
        for name, tp in changelogs.items():
            now = self._topology.stores[name].kind
            if (before := cut.kinds.get(name, now)) != now:
                raise StateError(
                    f"store {name!r} is of kind {now}, but its changelog {tp.topic} is of an earlier "
                    f"topology's of kind {before}: give the store another name, or reset the application"
                )

    async def _reached(
        self, changelogs: Mapping[str, TopicPartition], committed: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, int]:
        """Return the committed positions of inputs that stores are restored from, if the log has them."""
        stores = self._topology.stores
        tps = [tp for name, tp in changelogs.items() if stores[name].source_topic and tp in committed]
        if not tps:
            return {}
        ends = await Admin(self._client).list_offsets(dict.fromkeys(tps, "latest"))
        return {tp: committed[tp].offset for tp in tps if _may_be_there(committed[tp], ends[tp])}

    async def changelogs(self, id: TaskId) -> dict[str, TopicPartition]:
        """Return the partition that each store of a task is restored from."""
        counts = await count_partitions(self._client, self._topology)
        return changelogs_of(id, self._topology, self._names, counts)

    def sources(
        self, changelogs: Mapping[str, TopicPartition], positions: Mapping[TopicPartition, int]
    ) -> dict[str, Source]:
        """Return the inputs that stores are restored from, by store; see `sources_of`."""
        return sources_of(self._topology, changelogs, positions)

    async def inputs(self, ids: Iterable[TaskId]) -> dict[TaskId, list[TopicPartition]]:
        """Return the input partitions of each of these tasks."""
        counts = await count_partitions(self._client, self._topology)
        return {id: list(self._inputs(id, counts)) for id in ids}

    async def open_stores(self, id: TaskId, stores: dict[str, CachedStore]) -> None:
        """Open the task's stores that are not in ``stores``, and add them to it."""
        self._folder.opened(id)
        for name in self._topology.subtopologies[id.subtopology].stores:
            if name not in stores:
                await self._restorer.run(self._open_store, name, id, stores)

    def _open_store(self, name: str, id: TaskId, stores: dict[str, CachedStore]) -> None:
        """Open the store and add it to ``stores``, so that it is closed even if the opening was cancelled.

        RocksDB reads and writes files when it opens. rocksdict keeps the GIL meanwhile (0.3.29), so the event
        loop runs only between two stores.
        """
        spec = self._topology.stores[name]
        spec = spec.of_topic(self._names.changelog(spec))
        stores[name] = open_store(spec, self._folder.task(id), self._memory)

    async def _task(
        self,
        id: TaskId,
        stores: Mapping[str, CachedStore],
        inputs: Inputs,
        cut: Cut,
        committed: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> Task:
        # In the worker: this calls the processors' own code.
        task = await self._worker.run(
            Task,
            id,
            self._topology.subtopologies[id.subtopology],
            stores,
            self._environment,
            self._settings,
            times=cut.times,
        )
        ends = await self._ends(inputs)
        positions = {tp: committed[tp] for tp in cut.positions if _may_be_there(committed[tp], ends[tp])}
        for tp in cut.positions.keys() - positions.keys():
            log.warning(
                "%s ends before the committed position %d: was it created again?", tp, cut.positions[tp]
            )
        positions.update(await self._begin({tp: inputs[tp] for tp in inputs if tp not in positions}))
        if self._config.isolation_level == "read_committed":
            ends = await self._ends(inputs, "read_committed")
        for tp, source in inputs.items():
            begin, end = positions[tp], ends[tp].offset
            start = InputStart(position=begin.offset, end=end, leader_epoch=begin.leader_epoch)
            task.add_input(tp, source, start)
        return task

    async def _ends(
        self, inputs: Inputs, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> Mapping[TopicPartition, ListedOffset]:
        specs = dict.fromkeys(inputs, "latest")
        return await Admin(self._client).list_offsets(specs, isolation_level=isolation_level)

    async def _begin(self, inputs: Inputs) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the first offset of inputs without a committed position.

        Raises StreamsError if their reset policy is "none".
        """
        resets: dict[TopicPartition, str | int] = {}
        for tp, source in inputs.items():
            reset = source.reset or self._config.auto_offset_reset
            if reset == "none":
                raise StreamsError(f"{tp} has no (valid) committed position and auto.offset.reset is none")
            resets[tp] = reset
        if not resets:
            return {}
        offsets = await Admin(self._client).list_offsets(resets, isolation_level=self._config.isolation_level)
        return {tp: OffsetAndMetadata(each.offset) for tp, each in offsets.items()}


def _close_stores(stores: Mapping[str, CachedStore]) -> None:
    for store in stores.values():
        store.close()


def _may_be_there(committed: OffsetAndMetadata, end: ListedOffset) -> bool:
    """Return True if a committed position is in the log, or the log was truncated since the commit.

    A truncated log has a later leader epoch than the commit, and the fetcher finds the offset to go on at
    (KIP-320). A log that is shorter in the same epoch belongs to a topic that was deleted and created again.
    """
    return committed.offset <= end.offset or 0 <= committed.leader_epoch < end.leader_epoch
