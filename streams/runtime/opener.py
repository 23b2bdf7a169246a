"""Opening tasks: their stores, their state restored to the last commit, their inputs from there on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from logd.client import Admin, Client, GroupMember, TopicPartition
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.graph import SourceNode
from streams.runtime.folder import StateFolder
from streams.runtime.positions import Cut, read_cut
from streams.runtime.protocol import count_partitions
from streams.runtime.restore import restore_stores
from streams.runtime.running import RunningTask
from streams.runtime.task import Clock, Task, TaskId
from streams.runtime.topics import TopicNames
from streams.runtime.worker import Worker
from streams.state import CachedStore, open_store
from streams.topology import Topology

log = logging.getLogger(__name__)

Inputs = dict[TopicPartition, SourceNode]


class TaskOpener:
    """Makes `RunningTask`s of task ids, for one application."""

    def __init__(
        self,
        client: Client,
        member: GroupMember,
        topology: Topology,
        names: TopicNames,
        *,
        config: StreamsConfig,
        folder: StateFolder,
        clock: Clock,
        worker: Worker,
    ) -> None:
        self._client = client
        self._member = member
        self._topology = topology
        self._names = names
        self._config = config
        self._folder = folder
        self._clock = clock
        self._worker = worker

    async def open(self, ids: Iterable[TaskId]) -> list[RunningTask]:
        """Open these tasks; if one fails, none stays open."""
        counts = await count_partitions(self._client, self._topology)
        opened: list[RunningTask] = []
        try:
            for id in ids:
                opened.append(await self._open(id, self._inputs(id, counts)))
        except BaseException:
            for running in opened:
                running.task.close(clean=False)
            raise
        return opened

    def _inputs(self, id: TaskId, counts: Mapping[str, int]) -> Inputs:
        return {
            TopicPartition(self._names.topic(topic), id.partition): source
            for source in self._topology.subtopologies[id.subtopology].sources
            for topic in source.topics
            if id.partition < counts[topic]
        }

    async def _open(self, id: TaskId, inputs: Inputs) -> RunningTask:
        subtopology = self._topology.subtopologies[id.subtopology]
        changelogs = {
            name: TopicPartition(self._names.changelog(self._topology.stores[name]), id.partition)
            for name in subtopology.stores
            if self._topology.stores[name].logged
        }
        cut = read_cut(await self._member.committed([*inputs, *changelogs.values()]), inputs)
        stores: dict[str, CachedStore] = {}
        try:
            for name in subtopology.stores:
                stores[name] = self._store(name, id)
            cuts, ends = await restore_stores(
                self._client,
                {changelogs[name]: stores[name] for name in changelogs},
                cut.changelogs,
                worker=self._worker,
            )
            task = await self._task(id, stores, inputs, cut)
        except BaseException:
            for store in stores.values():
                store.close()
            raise
        return RunningTask(task, changelogs, cuts, ends)

    def _store(self, name: str, id: TaskId) -> CachedStore:
        return open_store(self._topology.stores[name], self._folder.task(id))

    async def _task(self, id: TaskId, stores: Mapping[str, CachedStore], inputs: Inputs, cut: Cut) -> Task:
        task = Task(
            id,
            self._topology.subtopologies[id.subtopology],
            stores,
            clock=self._clock,
            max_idle_ms=self._config.max_task_idle_ms,
            on_bad_input=self._config.deserialization_exception_handler,
            on_bad_output=self._config.production_exception_handler,
            times=cut.times,
        )
        ends = await Admin(self._client).list_offsets(dict.fromkeys(inputs, "latest"))
        positions = {tp: offset for tp, offset in cut.positions.items() if offset <= ends[tp].offset}
        for tp in cut.positions.keys() - positions.keys():
            log.warning("%s ends before the committed position %d: made anew?", tp, cut.positions[tp])
        positions.update(await self._begin({tp: inputs[tp] for tp in inputs if tp not in positions}))
        for tp, source in inputs.items():
            task.add_input(tp, source, position=positions[tp], end=ends[tp].offset)
        return task

    async def _begin(self, inputs: Inputs) -> dict[TopicPartition, int]:
        """Where inputs without a committed position begin."""
        wanted: dict[TopicPartition, str | int] = {}
        for tp, source in inputs.items():
            reset = source.reset or self._config.auto_offset_reset
            if reset == "none":
                raise StreamsError(f"{tp} has no (valid) committed position and auto.offset.reset is none")
            wanted[tp] = reset
        found = await Admin(self._client).list_offsets(wanted) if wanted else {}
        return {tp: each.offset for tp, each in found.items()}
