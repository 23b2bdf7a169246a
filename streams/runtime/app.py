"""`KafkaStreams`: one instance of an application, from joining the group to a clean end."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import signal
import time
from collections.abc import Collection, Coroutine, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

from kafka_client import (
    BatchProducer,
    Client,
    GroupMember,
    TopicPartition,
)
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
from streams.runtime.app_metrics import AppMetrics
from streams.runtime.assignment.assignment import Rules
from streams.runtime.assignment.hosts import Hosts, Partitioner
from streams.runtime.assignment.partition_watcher import watch_partitions
from streams.runtime.assignment.probing import Probing
from streams.runtime.assignment.protocol import StreamsProtocol, count_partitions
from streams.runtime.built import Buildable, built_for
from streams.runtime.cleaner import clean_state
from streams.runtime.commit.changelog_writer import ChangelogWriter
from streams.runtime.commit.commit import Committer
from streams.runtime.commit.output import Output
from streams.runtime.commit.producers import guarantee_of, producer_for
from streams.runtime.commit.purge import Purge, RepartitionPurge
from streams.runtime.commit.refusals import metadata_limit
from streams.runtime.commit.sink_topics import SinkTopics, find_sinks
from streams.runtime.commit.transactions import Transactions
from streams.runtime.contact import say_if_nobody_answers, watch_brokers
from streams.runtime.folder import StateFolder
from streams.runtime.local_queries import LocalQueries
from streams.runtime.loop import TaskLoop
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.global_stores import GlobalStores
from streams.runtime.restore.local_state_offsets import look_after_a_kill, stored_offsets
from streams.runtime.restore.restore_listener import RestoreListeners, StateRestoreListener, progress
from streams.runtime.standbys import Standbys
from streams.runtime.status import State, StateListener, Status
from streams.runtime.task.idle_ends import IdleEnds, upstream_of
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task_facts import task_facts
from streams.runtime.task_id import TaskId
from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.event_loop import run_in_new_loop
from streams.runtime.threads.poll_interval_watchdog import watch_worker
from streams.runtime.threads.worker import Worker
from streams.runtime.topics import TopicNames
from streams.state import CachedStore, RocksMemory, check_installed
from streams.topology import Topology, own_topology, read_topics

if TYPE_CHECKING:
    from streams.http.view import HttpView

log = logging.getLogger(__name__)

View = TypeVar("View", bound=StoreView)
Work: TypeAlias = Coroutine[Any, Any, None]

STANDBYS_LOOK_MS = 1000
"""How often standbys ask what was committed; more often if commits are."""


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
        self._told = ExitStack()
        """Ends what the registry tells of this instance."""
        self._status = Status()
        self._restores = RestoreListeners()
        self._paused = False
        self._names = TopicNames(self.config.application_id, topology)
        self._hosts = Hosts(topology, self._names, self.config.application_server)
        self._view: HttpView | None = None
        self._failure: BaseException | None = None
        self._ended = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._producer: BatchProducer | Transactions

    # -- life

    async def start(self) -> None:
        """Lock the state folder, connect, join the group; returns before tasks run. Of a topology of global
        tables and stores alone nothing is processed: no group is joined, and it returns when they are read.

        Raises StateFolderLocked, StateError (RocksDB is needed and not installed), ConnectionClosed,
        TopologyError (inputs missing or not co-partitioned).
        """
        config = self.config
        check_installed(self.topology.stores.values())
        self._folder = StateFolder(config.state_dir, config.application_id)
        self._worker, self._restorer = Worker(), Worker("restorer")
        client_id = config.client_id or config.application_id
        self._client = Client(
            config.bootstrap_servers, metrics=self.registry, **{"client_id": client_id, **config.client}
        )
        self._memory = RocksMemory(
            block_cache_bytes=config.rocksdb_block_cache_bytes,
            write_buffer_bytes=config.rocksdb_write_buffer_bytes,
        )
        self._coroutines = LoopCoroutines(self._worker.interrupted)
        self._globals = GlobalStores(
            self._client,
            self.topology,
            config,
            self._folder.global_stores,
            self._worker,
            wall_clock,
            self._memory,
        )
        try:
            self._bind_view()
            await self._connect()
            if self._view is not None:
                await self._view.start()
            await self._globals.start()
        except BaseException:
            await self._close_view()
            await self._globals.close()
            await self._client.close()
            self._worker.close()
            self._restorer.close()
            self._folder.close()
            raise
        self._status.become(State.REBALANCING)
        if self.topology.with_tasks:
            await self._member.start()
            self._begin(self._loop.run(), beside=self._work_beside())
        else:
            contact = watch_brokers(self._client, config.application_id)
            self._begin(self._globals.run(), beside={"contact": contact})
            self._hosts.told_alone()
            self._status.become(State.RUNNING)

    def _begin(self, work: Work, *, beside: Mapping[str, Work] | None = None) -> None:
        """Have this done until `close`; an error in it, or in what goes on beside, ends the application."""
        id = self.config.application_id
        self._beside = [
            asyncio.create_task(each, name=f"{name}-{id}") for name, each in (beside or {}).items()
        ]
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

    def _work_beside(self) -> dict[str, Work]:
        """What goes on beside the loop, by name."""
        config, member = self.config, self._member
        return {
            "watch": watch_partitions(
                self._client, member, self._protocol, every_ms=config.metadata_max_age_ms
            ),
            "contact": watch_brokers(self._client, config.application_id),
            "clean": clean_state(self._loop, self._folder, every_ms=config.state_cleanup_delay_ms),
            "global": self._globals.run(),
            "standbys": self._standbys.run(),
            "hang": watch_worker(
                self._worker,
                self._coroutines,
                member,
                limit_ms=config.max_poll_interval_ms,
                nodes=self.topology.nodes,
            ),
        }

    async def _connect(self) -> None:
        """Make what works together here, from the producer up to the loop, and start the producer."""
        config, topology = self.config, self.topology
        await say_if_nobody_answers(self._client, config.application_id)
        self._protocol = self._make_protocol()
        read_topics(topology, await self._protocol.match())
        counts = await count_partitions(self._client, topology)
        written = {self._names.topic(topic): counts[topic] for topic in topology.repartition_topics}
        dead_letters = config.errors_dead_letter_queue_topic_name
        written.update(await find_sinks(self._client, topology, dead_letters))
        self._producer = producer_for(self._client, config, self._folder, wall_clock)
        await look_after_a_kill(self._folder, topology, self._restorer)
        self._member = self._make_member()
        self._probing = Probing(self._member)
        sink_topics = SinkTopics(self._client, self._names, written)
        self._output = Output(
            self._producer,
            self._names,
            written,
            config.production_exception_handler,
            find_count=sink_topics.find_count,
            dead_letter_topic=dead_letters,
        )
        buffer = InputBuffer(config.input_buffer_max_bytes)
        self._opener = self._make_opener(buffer, sink_topics)
        self._standbys = self._make_standbys()
        self._loop = self._make_loop(buffer)
        self._loop.on_change = self._tasks_changed
        self._queries = LocalQueries(
            topology,
            self._status,
            self._loop,
            self._standbys,
            self._opener,
            self._globals,
            self._worker,
            self._restorer,
        )
        self._loop.pause(paused=self._paused)
        if topology.with_tasks:
            await self._producer.start()
        told = AppMetrics(self._status, self._loop, self._opener, self._standbys, buffer, topology)
        self._told.callback(told.add_to(self.registry, self._client.client_id))

    def _make_protocol(self) -> StreamsProtocol:
        config = self.config
        return StreamsProtocol(
            self._client,
            self.topology,
            self._names,
            replication_factor=config.replication_factor,
            rules=Rules(
                standbys=config.num_standby_replicas,
                acceptable_lag=config.acceptable_recovery_lag,
                warmups=config.max_warmup_replicas,
            ),
            probing_interval_ms=config.probing_rebalance_interval_ms,
            state=lambda: self._loop.member_state(stored_offsets(self._folder, self.topology)),
            host=lambda: self._hosts.own,
        )

    def _make_member(self) -> GroupMember:
        config = self.config
        return GroupMember(
            self._client,
            config.application_id,
            protocols=[self._protocol],
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            on_failed=self._fail,
            eager=False,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            group_instance_id=config.group_instance_id,
            assigned_partitions=lambda: len(self._loop.positions()),
        )

    def _make_opener(self, buffer: InputBuffer, sink_topics: SinkTopics) -> TaskOpener:
        return TaskOpener(
            self._client,
            self._member,
            self.topology,
            self._names,
            config=self.config,
            folder=self._folder,
            clock=wall_clock,
            worker=self._worker,
            restorer=self._restorer,
            buffer=buffer,
            memory=self._memory,
            global_stores=self._globals.stores,
            sink_topics=sink_topics,
            listeners=self._restores,
            coroutines=self._coroutines,
        )

    def _make_standbys(self) -> Standbys:
        config = self.config
        return Standbys(
            self._client,
            self._member,
            self._opener,
            folder=self._folder,
            restorer=self._restorer,
            clock=wall_clock,
            every_ms=min(max(config.commit_every_ms, config.poll_ms), STANDBYS_LOOK_MS),
            acceptable_lag=config.acceptable_recovery_lag,
            on_warm=self._member.request_rejoin,
        )

    def _make_loop(self, buffer: InputBuffer) -> TaskLoop:
        config, topology = self.config, self.topology
        return TaskLoop(
            self._client,
            self._member,
            opener=self._opener,
            standbys=self._standbys,
            restorer=self._restorer,
            committer=self._make_committer(),
            output=self._output,
            purge=RepartitionPurge(
                self._client,
                [self._names.topic(topic) for topic in topology.repartition_topics],
                interval_ms=config.repartition_purge_interval_ms,
                clock=wall_clock,
            ),
            changelog_purge=Purge(
                self._client,
                "changelogs of windows",
                interval_ms=config.repartition_purge_interval_ms,
                clock=wall_clock,
            ),
            worker=self._worker,
            coroutines=self._coroutines,
            buffer=buffer,
            config=config,
            clock=wall_clock,
            idle_ends=IdleEnds(
                self._client, config.application_id, lambda: upstream_of(topology, self._names, config)
            ),
        )

    def _make_committer(self) -> Committer:
        return Committer(
            guarantee_of(self._producer, self._member, self._output),
            ChangelogWriter(self._producer, self._worker, undoable=not self.config.exactly_once),
            self._member,
            self._output,
            self._worker,
            hold_max_ms=self.config.revoke_timeout_ms,
            metadata_limit=metadata_limit(self._client, self.config.application_id),
        )

    async def close(self) -> None:
        """Commit, leave the group, close everything; what ended the application before is not raised."""
        if self._running is None:
            return
        running, self._running = self._running, None
        self._status.become(State.PENDING_SHUTDOWN)
        async with self._loop.between_turns():
            running.cancel()
        self._probing.cancel()
        for each in self._beside:
            each.cancel()
        await asyncio.gather(running, *self._beside, return_exceptions=True)
        if self._failure is not None:
            await self._loop.drop()
        try:
            await self._close_view()
            await self._member.close()
        finally:
            await self._close_all()

    async def _close_all(self) -> None:
        try:
            try:
                await self._loop.close()
            finally:
                await self._coroutines.close()
        finally:
            await self._producer.close(timeout_ms=self.config.poll_ms if self._failure else None)
            await self._globals.close()
            await self._client.close()
            self._worker.close()
            self._restorer.close()
            self._folder.close()
            self._status.become(State.ERROR if self._failure else State.NOT_RUNNING)
            self._told.close()
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
            self._loop.pause(paused=paused)

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
        return sorted(self._loop.tasks) if self.state is not State.CREATED else []

    @property
    def standby_tasks(self) -> list[TaskId]:
        """The tasks this instance keeps the state of, which run elsewhere."""
        return sorted(self._standbys.tasks) if self.state is not State.CREATED else []

    def stores(self, name: str) -> list[CachedStore]:
        """The store of that name of each task here, for reading while the application stands still: a look
        beside a change may undo it in memory. To look at any time, ask `store`.

        What was processed and not committed is in it. A global table has one.
        """
        if name in self._globals.stores:
            return [self._globals.stores[name]]
        tasks = (running.task for _, running in sorted(self._loop.tasks.items()))
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
        return self._queries

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
        return list(task_facts(self.topology, self._loop, self._opener, self._standbys))

    def metrics(self) -> dict[str, NodeMetrics]:
        """Counters by node name, over all tasks this instance has had."""
        return self._loop.metrics() if self.state is not State.CREATED else {}

    def summary(self) -> dict[str, Any]:
        """Tasks, and records in (sources), out (sinks), dropped (anywhere) and late; fit for JSON.

        `restoring`: of tasks that are about to run here, the records ``restored`` and the offsets of their
        changelogs that ``remain``.
        """
        nodes, metrics = self.topology.nodes, self.metrics()
        sources = [each for name, each in metrics.items() if isinstance(nodes[name], SourceNode)]
        sinks = [each for name, each in metrics.items() if isinstance(nodes[name], SinkNode)]
        refused = self._output.dropped if metrics else 0
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
        return {str(id): progress(each.values()) for id, each in sorted(self._opener.restoring.items())}

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
        positions = self._loop.positions()
        ends = await self._loop.ends()
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
            self._loop.progress.clear()
            if self.state is State.RUNNING and await self.lag() == 0:
                # In this order: a commit may forward tables into repartition topics, which makes for new lag.
                if self._loop.is_committed() and await self.lag() == 0 and self._loop.is_committed():
                    return  # Tasks that were dropped meanwhile would have no lag.
                self._loop.request_commit()
            elif self._loop.may_wait_for_its_commit:
                self._loop.request_commit()
            await self._loop.progress.wait()

    # -- the group's callbacks

    async def _on_assigned(self, assignment: bytes, generation: int) -> None:
        told = self._protocol.read_assignment(assignment)
        log.info(
            "%s: tasks %s; standby tasks %s",
            self.config.application_id,
            " ".join(map(str, sorted(told.active))) or "none",
            " ".join(map(str, sorted(told.standby))) or "none",
        )
        self._hosts.told(told.hosts, told.partitions)
        self._probing.set(told.probe_ms)
        await self._loop.assigned(told, generation)

    def _tasks_changed(self) -> None:
        self._status.become(State.RUNNING if self._loop.is_running else State.REBALANCING)

    async def _on_revoked(self, assignment: bytes, generation: int) -> None:
        await self._loop.revoked()

    async def _on_lost(self, assignment: bytes, generation: int) -> None:
        self._status.become(State.REBALANCING)
        await self._loop.lost()

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
        self._loop.progress.set()
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
