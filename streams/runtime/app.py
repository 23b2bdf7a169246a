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
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class KafkaStreams:
    """An instance of an application: runs a topology, or the topology that a builder builds, on a cluster.

    Settings are a `StreamsConfig`, keywords, or both (keywords win):
    ``KafkaStreams(topology, application_id="delays", bootstrap_servers="localhost:9092")``.
    ``registry`` gets the instance's metrics; by default it is a new one. Instances that share a registry need
    different client ids. `run` blocks until a signal; in a running event loop use the instance as an async
    context manager.
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
        """Lock the state folder, connect and join the group; return before tasks run.

        A topology of global tables and stores alone has no tasks: then no group is joined, and `start`
        returns when the tables are read.

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
            self._hosts.assign_own()
            self._status.become(State.RUNNING)

    def _begin(self, work: Work, beside: Mapping[str, Work]) -> None:
        """Run all this until `close`. An error in any of it ends the application."""
        id = self.config.application_id
        self._beside = [asyncio.create_task(each, name=f"{name}-{id}") for name, each in beside.items()]
        self._running = asyncio.create_task(work, name=f"streams-{id}")
        for each in (*self._beside, self._running):
            each.add_done_callback(self._loop_ended)

    def _bind_view(self) -> None:
        """Bind the port of the HTTP view, before the instance announces it to the group."""
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
        """Commit, leave the group and close everything. Does not raise the error that ended the application;
        `check` does.
        """
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
        """Run until SIGINT or SIGTERM, then close. Uses uvloop's event loop if uvloop is installed.

        Raises StreamsError if an error ended the application.
        """
        run_in_new_loop(self.run_until_signalled())

    async def run_until_signalled(self) -> None:
        """Run until SIGINT or SIGTERM, then close, in a running event loop. Raises as `run` does."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await self.run_until(stop)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def run_until(self, stop: asyncio.Event, *, when_caught_up: bool = False) -> None:
        """Start, and close once ``stop`` is set; ``when_caught_up``: or once all input records are committed.

        ``stop`` also cancels a start that waits for a broker. Raises StreamsError if an error ended the
        application.
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
        """The current state of the application."""
        return self._status.state

    def add_state_listener(self, listener: StateListener) -> None:
        """Call ``listener(new, old)`` on every change of state."""
        self._status.listeners.append(listener)

    def add_restore_listener(self, listener: StateRestoreListener) -> None:
        """Report the progress of restores to ``listener`` (Kafka's setGlobalStateRestoreListener)."""
        self._restores.listeners.append(listener)

    def pause(self) -> None:
        """Process nothing until `resume` (KIP-834).

        The instance keeps its tasks and its place in the group, commits processed records, and restores newly
        assigned tasks. Schedules do not fire, and standbys are not updated.
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
        """True from `pause` to `resume`."""
        return self._paused

    def check(self) -> None:
        """Raise StreamsError if an error ended the application."""
        if self._failure is not None:
            raise StreamsError(f"{self.config.application_id} ended: {self._failure}") from self._failure

    @property
    def tasks(self) -> list[TaskId]:
        """The tasks this instance runs."""
        return sorted(self._instance.loop.tasks) if self.state is not State.CREATED else []

    @property
    def standby_tasks(self) -> list[TaskId]:
        """The tasks of other instances whose state this instance keeps up to date."""
        return sorted(self._instance.standbys.tasks) if self.state is not State.CREATED else []

    def stores(self, name: str) -> list[CachedStore]:
        """Return the stores of that name, one per task that runs here; a global table has one.

        Read them only while the application processes nothing: a read beside a change may undo the change in
        memory. `store` may be read at any time. Uncommitted changes are visible.
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
        """Return a read-only view of the store of that name, over all tasks that run here.

        ``kind``: the expected type of the view: `KeyValueView`, `WindowView` or `SessionView`.
        ``partition``: read only the store of this partition's task. ``stale``: also read copies, which belong
        to tasks that run elsewhere or are being restored. A running task's uncommitted changes are visible; a
        copy has only committed changes. Views may be used from any thread.

        Raises UnknownStateStore, StreamsNotRunning. Each query raises InvalidStateStore if no part of the
        store is here (any more).
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
        """Query a store. Each partition's result has the position in its inputs (KIP-796).

        ``partitions``: query only these. ``position_bound``: partitions that have not reached this position
        fail with NOT_UP_TO_BOUND. ``require_active``: copies fail too. Raises UnknownStateStore,
        StreamsNotRunning.
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
        """Return what each instance with an ``application.server`` runs, as of the last assignment here."""
        return self._hosts.all()

    def streams_metadata_for_store(self, name: str) -> list[StreamsMetadata]:
        """Return the instances that have a part of the store. Raises UnknownStateStore."""
        return self._hosts.of_store(name)

    def query_metadata_for_key(
        self, store: str, key: Any, *, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """Return which instance has a key of a store, and which have copies.

        ``key``: a value for the store's key serde. ``partitioner``: returns the partition of a key and a
        number of partitions; by default the hash of Kafka's producers. Raises UnknownStateStore;
        InvalidStateStore before the first assignment.
        """
        return self._hosts.of_key(store, key, partitioner)

    def query_metadata_for_partition(self, store: str, partition: int) -> KeyQueryMetadata:
        """Return which instance has a partition, and which have copies; see `query_metadata_for_key`."""
        return self._hosts.of_partition(store, partition)

    def partitions_of_store(self, store: str) -> int:
        """Return a store's number of partitions.

        Raises UnknownStateStore; InvalidStateStore before the first assignment.
        """
        return self._hosts.partitions_of(store)

    def task_facts(self) -> list[dict[str, Any]]:
        """Return facts about each task and standby task here; see `streams.runtime.task_facts`."""
        if self.state is State.CREATED:
            return []
        parts = self._instance
        return list(task_facts(self.topology, parts.loop, parts.opener, parts.standbys))

    def metrics(self) -> dict[str, NodeMetrics]:
        """Return counters by node name, over all tasks this instance has had."""
        return self._instance.loop.metrics() if self.state is not State.CREATED else {}

    def summary(self) -> dict[str, Any]:
        """Return the tasks, and counts of records in (sources), out (sinks), dropped and late, fit for JSON.

        `restoring` has the records ``restored`` and the changelog offsets that ``remain``, for each task that
        is about to run here.
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
        """Ask the brokers for the log ends and return the number of input records left to process.

        A position beyond the log end counts as lag too: the log was truncated, and the new position is not
        known yet.
        """
        return sum(abs(end - position) for position, end in (await self.lags()).values())

    async def lags(self) -> dict[TopicPartition, tuple[int, int]]:
        """Ask the brokers for the log ends and return position and log end of each input."""
        if self.state is State.CREATED:
            return {}
        positions = self._instance.loop.inputs.positions()
        ends = await self._instance.loop.inputs.ends()
        return {tp: (positions.get(tp, 0), end) for tp, end in ends.items()}

    async def wait_ended(self) -> None:
        """Wait until the application is closed or ended by an error, which `check` raises."""
        await self._ended.wait()

    async def wait_until_caught_up(self) -> None:
        """Wait until this instance has processed and committed all records of its inputs.

        Its own repartition topics count too; global tables are read when `start` returns. Raises StreamsError
        if an error ends the application instead.
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
        """End the application if the loop, or work beside it, ended with an error."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Keep the error that ends the application and stop its work; `close` releases everything."""
        if self._failure is None:
            self._failure = error
            log.error("%s ends: %s", self.config.application_id, error)
        self._status.become(State.PENDING_ERROR)
        if self._running is not None:
            self._running.cancel()
        self._instance.loop.progress.set()
        self._ended.set()


async def _first(main: asyncio.Task[None], other: asyncio.Task[Any]) -> bool:
    """Return True if ``main`` ends before ``other``; else cancel it. Raises the error of ``main``."""
    try:
        await asyncio.wait([main, other], return_when=asyncio.FIRST_COMPLETED)
    finally:
        main.cancel()
        await asyncio.wait([main])
    if main.cancelled():
        return False
    main.result()
    return True
