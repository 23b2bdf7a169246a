"""`KafkaStreams`: one instance of an application, from joining the group to a clean end."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import signal
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from kafka_client import TopicPartition
from kafka_client.http import check_installed as check_installed_http
from kafka_client.metrics.metrics import Metrics
from streams.config import StreamsConfig
from streams.errors import StreamsError, StreamsNotRunning
from streams.graph import SinkNode, SourceNode
from streams.processors.metrics import NodeMetrics
from streams.queries import (
    Answer,
    HostInfo,
    KeyQueryMetadata,
    PositionBound,
    StateQueryResult,
    StoreView,
    StreamsMetadata,
)
from streams.queries.query import Query
from streams.runtime.application import Application
from streams.runtime.assignment.hosts import Hosts, Partitioner
from streams.runtime.built import Buildable, built_for
from streams.runtime.instance import Instance, Work
from streams.runtime.local_queries import LocalQueries
from streams.runtime.restore.restore_listener import RestoreListeners, StateRestoreListener, progress
from streams.runtime.status import State, StateListener, Status
from streams.runtime.task_facts import task_facts
from streams.runtime.task_id import TaskId
from streams.runtime.threads.event_loop import run_in_new_loop
from streams.runtime.topics import TopicNames
from streams.state import CachedStore, check_installed
from streams.topology import Topology, own_topology

if TYPE_CHECKING:
    from streams.http.view import HttpView

log = logging.getLogger(__name__)

View = TypeVar("View", bound=StoreView)


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class KafkaStreams:
    """Runs a topology, or what a builder builds with the settings, against a cluster.

    Settings are a `StreamsConfig`, keywords, or both (keywords win):
    ``KafkaStreams(topology, application_id="delays", bootstrap_servers="localhost:9092")``.
    ``registry``: where it tells of itself; its own unless given. No two of the same client id in one.
    `run` blocks until a signal; in an event loop of your own use it as an async context manager.
    """

    def __init__(
        self,
        topology: Topology | Buildable,
        config: StreamsConfig | None = None,
        *,
        registry: Metrics | None = None,
        **settings: Any,
    ) -> None:
        self.config = StreamsConfig(**settings) if config is None else dataclasses.replace(config, **settings)
        self.topology = topology = own_topology(built_for(self.config, topology))
        self.registry = registry or Metrics()
        self._status = Status()
        self._restores = RestoreListeners()
        self._paused = False
        self._names = TopicNames(self.config.application_id, topology)
        self._hosts = Hosts(topology, self._names, self.config.application_server)
        self._view: HttpView | None = None
        self._failure: BaseException | None = None
        self._ended = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._beside: list[asyncio.Task[None]] = []
        self._instance: Instance
        """The parts of the application, from `start` on."""

    # -- life

    async def start(self) -> None:
        """Lock the state folder, connect, join the group; returns before tasks run. Of a topology of global
        tables and stores alone nothing is processed: no group is joined, and it returns when they are read.

        Raises StateFolderLocked, StateError (RocksDB is needed and not installed), ConnectionClosed,
        TopologyError (inputs missing or not co-partitioned).
        """
        check_installed(self.topology.stores.values())
        self._instance = instance = Instance(
            Application(topology=self.topology, config=self.config, names=self._names, clock=wall_clock),
            status=self._status,
            hosts=self._hosts,
            listeners=self._restores,
            registry=self.registry,
            on_failed=self._fail,
        )
        try:
            self._bind_view()
            await instance.connect()
            instance.loop.pause(paused=self._paused)
            if self._view is not None:
                await self._view.start()
            await instance.global_stores.start()
        except BaseException:
            await self._close_view()
            await instance.abandon()
            raise
        self._status.become(State.REBALANCING)
        if self.topology.with_tasks:
            await instance.member.start()
            self._begin(*instance.work())
        else:
            self._begin(*instance.work())
            self._hosts.told_alone()
            self._status.become(State.RUNNING)

    def _begin(self, work: Work, beside: Mapping[str, Work]) -> None:
        """Run all this until `close`. An error in any of it ends the application."""
        id = self.config.application_id
        self._beside = [asyncio.create_task(each, name=f"{name}-{id}") for name, each in beside.items()]
        self._running = asyncio.create_task(work, name=f"streams-{id}")
        for each in (*self._beside, self._running):
            each.add_done_callback(self._loop_ended)

    def _bind_view(self) -> None:
        """Take the port of the HTTP view, before others are told of it."""
        listener = self.config.http_listener
        if not listener:
            return
        check_installed_http("http.listener")
        from streams.http.view import HttpView  # Starlette and uvicorn are imported only where they serve.

        self._view = HttpView(self, listener)
        if not self.config.application_server:
            self._hosts.own = self._view.listens_on
        log.info("%s: http://%s", self.config.application_id, self._view.listens_on)

    async def _close_view(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            await view.close()

    async def close(self) -> None:
        """Commit, leave the group, close everything; what ended the application before is not raised."""
        if self._running is None:
            return
        running, self._running = self._running, None
        self._status.become(State.PENDING_SHUTDOWN)
        instance = self._instance
        async with instance.loop.between_turns():
            running.cancel()
        instance.cancel_probing()
        for each in self._beside:
            each.cancel()
        await asyncio.gather(running, *self._beside, return_exceptions=True)
        if self._failure is not None:
            await instance.loop.drop()
        try:
            await self._close_view()
            await instance.member.close()
        finally:
            await self._close_instance()

    async def _close_instance(self) -> None:
        try:
            await self._instance.close(producer_timeout_ms=self.config.poll_ms if self._failure else None)
        finally:
            self._status.become(State.ERROR if self._failure else State.NOT_RUNNING)
            self._instance.remove_metrics()
            self._ended.set()

    async def __aenter__(self) -> Self:
        if self._running is None:
            await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        await self.close()
        if kind is None:
            self.check()

    def run(self) -> None:
        """Run until SIGINT or SIGTERM, then close; raises what ended the application otherwise.

        In a loop of uvloop's where that is installed.
        """
        run_in_new_loop(self.run_until_signalled())

    async def run_until_signalled(self) -> None:
        """As `run`, in a running event loop."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await self.run_until(stop)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def run_until(self, stop: asyncio.Event, *, when_caught_up: bool = False) -> None:
        """Start, and close once ``stop`` is set, or all there is in the inputs is processed and committed.

        A start that does not get on, for want of a broker, is broken off by ``stop`` as well. Raises what
        ended the application otherwise.
        """
        stopped = asyncio.create_task(stop.wait())
        try:
            if not await _first(asyncio.create_task(self.start()), stopped):
                return
            async with self:
                ended = self.wait_until_caught_up() if when_caught_up else self.wait_ended()
                await _first(asyncio.create_task(ended), stopped)
        finally:
            stopped.cancel()

    # -- looking at it

    @property
    def state(self) -> State:
        """What the application is doing."""
        return self._status.state

    def add_state_listener(self, listener: StateListener) -> None:
        """Have ``listener(new, old)`` called on every change of state."""
        self._status.listeners.append(listener)

    def add_restore_listener(self, listener: StateRestoreListener) -> None:
        """Have ``listener`` told how stores are restored (Kafka's setGlobalStateRestoreListener)."""
        self._restores.listeners.append(listener)

    def pause(self) -> None:
        """Process nothing until `resume` (KIP-834): this instance keeps its tasks and its place in the group,
        commits what it has done, and restores tasks that it is given. Schedules do not fire, standbys rest.
        """
        self._pause(True)

    def resume(self) -> None:
        """End a pause."""
        self._pause(False)

    def _pause(self, paused: bool) -> None:
        self._paused = paused
        if self.state is not State.CREATED:
            self._instance.loop.pause(paused=paused)

    @property
    def is_paused(self) -> bool:
        """Whether `pause` was called, and not `resume` since."""
        return self._paused

    def check(self) -> None:
        """Raise what ended the application, if something did."""
        if self._failure is not None:
            raise StreamsError(f"{self.config.application_id} ended: {self._failure}") from self._failure

    @property
    def tasks(self) -> list[TaskId]:
        """The tasks this instance runs."""
        return sorted(self._instance.loop.tasks) if self.state is not State.CREATED else []

    @property
    def standby_tasks(self) -> list[TaskId]:
        """The tasks this instance keeps the state of, which run elsewhere."""
        return sorted(self._instance.standbys.tasks) if self.state is not State.CREATED else []

    def stores(self, name: str) -> list[CachedStore]:
        """The store of that name of each task here, for reading while the application stands still: a look
        beside a change may undo it in memory. To look at any time, ask `store`.

        What was processed and not committed is in it. A global table has one.
        """
        if name in self._instance.global_stores.stores:
            return [self._instance.global_stores.stores[name]]
        tasks = (running.task for _, running in sorted(self._instance.loop.tasks.items()))
        return [task.stores[name] for task in tasks if name in task.stores]

    # -- queries

    @overload
    def store(self, name: str, *, partition: int | None = None, stale: bool = False) -> StoreView: ...

    @overload
    def store(
        self, name: str, kind: type[View], *, partition: int | None = None, stale: bool = False
    ) -> View: ...

    def store(
        self, name: str, kind: Any = StoreView, *, partition: int | None = None, stale: bool = False
    ) -> Any:
        """A read-only view of the store of that name, over all tasks that run here; ``kind``, of which it has
        to be: `KeyValueView`, `WindowView` or `SessionView`. To be asked from any thread.

        ``partition``: of this one's task only. ``stale``: have copies read as well, of tasks that run
        elsewhere or are being restored. What a task processed is seen whether it is committed or not; a copy
        has what is committed. Raises UnknownStateStore, StreamsNotRunning; each query InvalidStateStore if
        nothing of the store is here (any more).
        """
        return self._queries_now().view(name, kind, partition=partition, stale=stale)

    def query(
        self,
        name: str,
        query: Query,
        *,
        partitions: Collection[int] | None = None,
        position_bound: PositionBound | None = None,
        require_active: bool = False,
    ) -> Answer[StateQueryResult]:
        """Ask a store, and be told by each partition here how far in its inputs that is (KIP-796).

        ``partitions``: these only. ``position_bound``: whoever is not as far refuses (NOT_UP_TO_BOUND).
        ``require_active``: copies refuse too. Raises UnknownStateStore, StreamsNotRunning.
        """
        return self._queries_now().query(
            name,
            query,
            partitions=partitions,
            position_bound=position_bound or PositionBound(),
            require_active=require_active,
        )

    def _queries_now(self) -> LocalQueries:
        if self.state is State.CREATED:
            raise StreamsNotRunning(self.state.value)
        return self._instance.queries

    @property
    def host(self) -> HostInfo | None:
        """This instance's ``application.server``."""
        return self._hosts.own

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """What each instance has that tells its ``application.server``, as of the last assignment here."""
        return self._hosts.all()

    def streams_metadata_for_store(self, name: str) -> list[StreamsMetadata]:
        """Of those that have something of the store; UnknownStateStore."""
        return self._hosts.of_store(name)

    def query_metadata_for_key(
        self, store: str, key: Any, *, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """Which instance has a key of a store, and which have copies.

        ``key``: as the store's key serde takes it. ``partitioner``: of key and number of partitions; the hash
        of Kafka's producers unless given. Raises UnknownStateStore; InvalidStateStore before the first
        assignment.
        """
        return self._hosts.of_key(store, key, partitioner)

    def query_metadata_for_partition(self, store: str, partition: int) -> KeyQueryMetadata:
        """As `query_metadata_for_key`, of all keys of a partition."""
        return self._hosts.of_partition(store, partition)

    def partitions_of_store(self, store: str) -> int:
        """How many a store has; UnknownStateStore, and InvalidStateStore before the first assignment."""
        return self._hosts.partitions_of(store)

    def task_facts(self) -> list[dict[str, Any]]:
        """Of each task here, copies too: see `streams.runtime.task_facts`."""
        if self.state is State.CREATED:
            return []
        parts = self._instance
        return list(task_facts(self.topology, parts.loop, parts.opener, parts.standbys))

    def metrics(self) -> dict[str, NodeMetrics]:
        """Counters by node name, over all tasks this instance has had."""
        return self._instance.loop.metrics() if self.state is not State.CREATED else {}

    def summary(self) -> dict[str, Any]:
        """Tasks, and records in (sources), out (sinks), dropped (anywhere) and late; fit for JSON.

        `restoring`: of tasks that are about to run here, the records ``restored`` and the offsets of their
        changelogs that ``remain``.
        """
        nodes, metrics = self.topology.nodes, self.metrics()
        sources = [each for name, each in metrics.items() if isinstance(nodes[name], SourceNode)]
        sinks = [each for name, each in metrics.items() if isinstance(nodes[name], SinkNode)]
        refused = self._instance.output.dropped if metrics else 0
        return {
            "tasks": [str(id) for id in self.tasks],
            "standby_tasks": [str(id) for id in self.standby_tasks],
            "restoring": self._restoring(),
            "records_in": sum(each.process_total for each in sources),
            "records_out": sum(each.process_total for each in sinks),
            "dropped_records": sum(each.dropped_records_total for each in metrics.values()) + refused,
            "late_records": sum(each.late_records_total for each in metrics.values()),
        }

    def _restoring(self) -> dict[str, dict[str, int]]:
        if self.state is State.CREATED:
            return {}
        restoring = self._instance.opener.restoring
        return {str(id): progress(each.values()) for id, each in sorted(restoring.items())}

    async def lag(self) -> int:
        """Records between this instance's tasks and the ends of their inputs, asked of the brokers now.

        A position beyond the log end counts as lag too: the log was truncated, and the new position is not
        known yet.
        """
        return sum(abs(end - position) for position, end in (await self.lags()).values())

    async def lags(self) -> dict[TopicPartition, tuple[int, int]]:
        """Position and log end of each input of this instance's tasks, asked of the brokers now."""
        if self.state is State.CREATED:
            return {}
        positions = self._instance.loop.inputs.positions()
        ends = await self._instance.loop.inputs.ends()
        return {tp: (positions.get(tp, 0), end) for tp, end in ends.items()}

    async def wait_ended(self) -> None:
        """Return once the application was closed or has ended by itself; `check` tells which."""
        await self._ended.wait()

    async def wait_until_caught_up(self) -> None:
        """Return once this instance has processed and committed all there is in its inputs.

        Its own repartition topics count too; global tables are read by the time it has started. Raises
        StreamsError if the application ends instead.
        """
        self.check()
        while self.topology.with_tasks:
            self.check()
            loop = self._instance.loop
            loop.progress.clear()
            if self.state is State.RUNNING and await self.lag() == 0:
                # In this order: a commit may forward tables into repartition topics, which makes for new lag.
                if loop.is_committed() and await self.lag() == 0 and loop.is_committed():
                    return  # Tasks that were dropped meanwhile would have no lag.
                loop.request_commit()
            elif loop.commits.waits_for_itself:
                loop.request_commit()
            await loop.progress.wait()

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        """The loop, or what goes on beside it, has ended: by itself only after an error."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Note the error that ends the application, and stop its work; `close` releases everything."""
        if self._failure is None:
            self._failure = error
            log.error("%s ends: %s", self.config.application_id, error)
        self._status.become(State.PENDING_ERROR)
        if self._running is not None:
            self._running.cancel()
        self._instance.loop.progress.set()
        self._ended.set()


async def _first(wanted: asyncio.Task[None], other: asyncio.Task[Any]) -> bool:
    """Whether ``wanted`` ends before ``other`` does, and is not cancelled by that; raises what it raises."""
    try:
        await asyncio.wait([wanted, other], return_when=asyncio.FIRST_COMPLETED)
    finally:
        wanted.cancel()
        await asyncio.wait([wanted])
    if wanted.cancelled():
        return False
    wanted.result()
    return True
