"""The parts of a running instance of an application, and how they are put together.

`streams.runtime.app` starts and ends an instance, and answers its user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeAlias

from kafka_client import BatchProducer, Client, GroupMember
from kafka_client.metrics.metrics import Metrics
from streams.runtime.app_metrics import AppMetrics
from streams.runtime.application import Application
from streams.runtime.assignment.assignment import Rules
from streams.runtime.assignment.hosts import Hosts
from streams.runtime.assignment.partition_watcher import watch_partitions
from streams.runtime.assignment.probing import Probing
from streams.runtime.assignment.protocol import StreamsProtocol, count_partitions
from streams.runtime.cleaner import clean_state
from streams.runtime.clients import Clients
from streams.runtime.commit.changelog_writer import ChangelogWriter
from streams.runtime.commit.commit import Committer
from streams.runtime.commit.output import Output
from streams.runtime.commit.producers import guarantee_of, producer_for
from streams.runtime.commit.purge import Purge, Purges, RepartitionPurge
from streams.runtime.commit.refusals import metadata_limit
from streams.runtime.commit.schedule import CommitSchedule
from streams.runtime.commit.sink_topics import SinkTopics, find_sinks
from streams.runtime.commit.transactions import Transactions
from streams.runtime.contact import say_if_nobody_answers, watch_brokers
from streams.runtime.folder import StateFolder
from streams.runtime.local_queries import LocalQueries
from streams.runtime.loop import TaskLoop
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.global_stores import GlobalStores
from streams.runtime.restore.local_state_offsets import look_after_a_kill, stored_offsets
from streams.runtime.restore.restore_listener import RestoreListeners
from streams.runtime.standbys import Standbys
from streams.runtime.status import State, Status
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.idle_ends import IdleEnds, upstream_of
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task_inputs import TaskInputs
from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.poll_interval_watchdog import watch_worker
from streams.runtime.threads.threads import Threads
from streams.runtime.threads.worker import Worker
from streams.state import RocksMemory
from streams.topology import read_topics

log = logging.getLogger(__name__)

Work: TypeAlias = Coroutine[Any, Any, None]

STANDBYS_LOOK_MS = 1000
"""How often standbys ask for commits, unless commits are made more often."""


class Instance:
    """The folder, threads, clients, member, loop and all other parts of one instance.

    Call `connect`, then run `work`; `close` ends both. ``on_failed`` is called with an error of the group
    member that ends the application.
    """

    output: Output
    producer: BatchProducer | Transactions
    member: GroupMember
    opener: TaskOpener
    standbys: Standbys
    loop: TaskLoop
    queries: LocalQueries

    def __init__(
        self,
        application: Application,
        *,
        status: Status,
        hosts: Hosts,
        listeners: RestoreListeners,
        registry: Metrics,
        on_failed: Callable[[BaseException], None],
    ) -> None:
        config = application.config
        self._application = application
        self._status = status
        self._hosts = hosts
        self._listeners = listeners
        self._registry = registry
        self._registrations = ExitStack()
        """Removes this instance's metrics from the registry."""
        self._on_failed = on_failed
        self.folder = StateFolder(config.state_dir, config.application_id)
        worker = Worker()
        self.threads = Threads(
            worker=worker, restorer=Worker("restorer"), coroutines=LoopCoroutines(worker.interrupted)
        )
        client_id = config.client_id or config.application_id
        self.client = Client(
            config.bootstrap_servers, metrics=registry, **{"client_id": client_id, **config.client}
        )
        self._memory = RocksMemory(
            block_cache_bytes=config.rocksdb_block_cache_bytes,
            write_buffer_bytes=config.rocksdb_write_buffer_bytes,
        )
        self.global_stores = GlobalStores(
            self.client,
            application.topology,
            config,
            self.folder.global_stores,
            worker,
            application.clock,
            self._memory,
        )

    async def connect(self) -> None:
        """Create the parts from the producer up to the loop, and start the producer.

        Raises ConnectionClosed; TopologyError if inputs are missing or not co-partitioned.
        """
        config, topology, names = (
            self._application.config,
            self._application.topology,
            self._application.names,
        )
        await say_if_nobody_answers(self.client, config.application_id)
        self._protocol = self._make_protocol()
        read_topics(topology, await self._protocol.match())
        counts = await count_partitions(self.client, topology)
        written = {names.topic(topic): counts[topic] for topic in topology.repartition_topics}
        dead_letters = config.errors_dead_letter_queue_topic_name
        written.update(await find_sinks(self.client, topology, dead_letters))
        self.producer = producer_for(self.client, config, self.folder, self._application.clock)
        await look_after_a_kill(self.folder, topology, self.threads.restorer)
        self.member = self._make_member()
        self._clients = Clients(client=self.client, member=self.member)
        self._probing = Probing(self.member)
        sink_topics = SinkTopics(self.client, names, written)
        self.output = Output(
            self.producer,
            names,
            written,
            config.production_exception_handler,
            find_count=sink_topics.find_count,
            dead_letter_topic=dead_letters,
        )
        buffer = InputBuffer(config.input_buffer_max_bytes)
        self.opener = self._make_opener(buffer, sink_topics)
        self.standbys = self._make_standbys()
        self.loop = self._make_loop(buffer)
        self.loop.on_change = self._tasks_changed
        self.queries = LocalQueries(
            topology,
            self._status,
            self.loop,
            self.standbys,
            self.opener,
            self.global_stores,
            self.threads.worker,
            self.threads.restorer,
        )
        if topology.with_tasks:
            await self.producer.start()
        metrics = AppMetrics(self._status, self.loop, self.opener, self.standbys, buffer, topology)
        self._registrations.callback(metrics.add_to(self._registry, self.client.client_id))

    def _make_protocol(self) -> StreamsProtocol:
        config, topology = self._application.config, self._application.topology
        return StreamsProtocol(
            self.client,
            topology,
            self._application.names,
            replication_factor=config.replication_factor,
            rules=Rules(
                standbys=config.num_standby_replicas,
                acceptable_lag=config.acceptable_recovery_lag,
                warmups=config.max_warmup_replicas,
            ),
            probing_interval_ms=config.probing_rebalance_interval_ms,
            state=lambda: self.loop.member_state(stored_offsets(self.folder, topology)),
            host=lambda: self._hosts.own,
        )

    def _make_member(self) -> GroupMember:
        config = self._application.config
        return GroupMember(
            self.client,
            config.application_id,
            protocols=[self._protocol],
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
            on_failed=self._on_failed,
            eager=False,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            group_instance_id=config.group_instance_id,
            assigned_partitions=lambda: len(self.loop.inputs.queues),
        )

    def _make_opener(self, buffer: InputBuffer, sink_topics: SinkTopics) -> TaskOpener:
        return TaskOpener(
            self._application,
            self._clients,
            self.threads,
            folder=self.folder,
            memory=self._memory,
            listeners=self._listeners,
            environment=TaskEnvironment(
                clock=self._application.clock,
                buffer=buffer,
                global_stores=self.global_stores.stores,
                partition_count=sink_topics.count,
                topic_name=self._application.names.topic,
                coroutines=self.threads.coroutines,
                between_runs=self.threads.worker.answer,
                state_dir=self.folder.made_for,
            ),
        )

    def _make_standbys(self) -> Standbys:
        config = self._application.config
        return Standbys(
            self._clients,
            self.opener,
            folder=self.folder,
            restorer=self.threads.restorer,
            clock=self._application.clock,
            every_ms=min(max(config.commit_every_ms, config.poll_ms), STANDBYS_LOOK_MS),
            acceptable_lag=config.acceptable_recovery_lag,
            on_warm=self.member.request_rejoin,
        )

    def _make_loop(self, buffer: InputBuffer) -> TaskLoop:
        config, topology, names = (
            self._application.config,
            self._application.topology,
            self._application.names,
        )
        inputs = TaskInputs(self._application, self._clients, buffer)
        return TaskLoop(
            self._application,
            self._clients,
            self.threads,
            opener=self.opener,
            standbys=self.standbys,
            inputs=inputs,
            commits=CommitSchedule(
                self._application,
                self.member,
                committer=self._make_committer(),
                output=self.output,
                purges=self._make_purges(),
                leader_epoch=inputs.leader_epoch,
            ),
            idle_ends=IdleEnds(
                self.client, config.application_id, lambda: upstream_of(topology, names, config)
            ),
        )

    def _make_committer(self) -> Committer:
        config = self._application.config
        return Committer(
            guarantee_of(self.producer, self.member, self.output),
            ChangelogWriter(self.producer, self.threads.worker, undoable=not config.exactly_once),
            self.member,
            self.output,
            self.threads.worker,
            hold_max_ms=config.revoke_timeout_ms,
            metadata_limit=metadata_limit(self.client, config.application_id),
        )

    def _make_purges(self) -> Purges:
        topology, names, clock = self._application.topology, self._application.names, self._application.clock
        interval_ms = self._application.config.repartition_purge_interval_ms
        topics = [names.topic(topic) for topic in topology.repartition_topics]
        return Purges(
            repartitions=RepartitionPurge(self.client, topics, interval_ms=interval_ms, clock=clock),
            changelogs=Purge(self.client, "changelogs of windows", interval_ms=interval_ms, clock=clock),
        )

    # -- work

    def work(self) -> tuple[Work, dict[str, Work]]:
        """Return the coroutine whose end ends the application, and those that run beside it, by name."""
        config, member, client = self._application.config, self.member, self.client
        contact = watch_brokers(client, config.application_id)
        if not self._application.topology.with_tasks:
            return self.global_stores.run(), {"contact": contact}
        return self.loop.run(), {
            "watch": watch_partitions(client, member, self._protocol, every_ms=config.metadata_max_age_ms),
            "contact": contact,
            "clean": clean_state(self.loop, self.folder, every_ms=config.state_cleanup_delay_ms),
            "global": self.global_stores.run(),
            "standbys": self.standbys.run(),
            "hang": watch_worker(
                self.threads.worker,
                self.threads.coroutines,
                member,
                limit_ms=config.max_poll_interval_ms,
                nodes=self._application.topology.nodes,
            ),
        }

    def cancel_probing(self) -> None:
        """Ask for no rebalance any more to see if warm-ups have caught up."""
        self._probing.cancel()

    # -- the end

    async def abandon(self) -> None:
        """Close what was created, after a start that failed."""
        await self.global_stores.close()
        await self.client.close()
        self.threads.close()
        self.folder.close()

    async def close(self, *, producer_timeout_ms: int | None) -> None:
        """Close everything; close the member before. ``producer_timeout_ms``: how long to wait for sends that
        are not acknowledged, None for as long as they may take.
        """
        try:
            try:
                await self.loop.close()
            finally:
                await self.threads.coroutines.close()
        finally:
            await self.producer.close(timeout_ms=producer_timeout_ms)
            await self.global_stores.close()
            await self.client.close()
            self.threads.close()
            self.folder.close()

    def remove_metrics(self) -> None:
        """Remove this instance's metrics from the registry."""
        self._registrations.close()

    # -- the group's callbacks

    async def _on_assigned(self, assignment: bytes, generation: int) -> None:
        decoded = self._protocol.read_assignment(assignment)
        log.info(
            "%s: tasks %s; standby tasks %s",
            self._application.config.application_id,
            " ".join(map(str, sorted(decoded.active))) or "none",
            " ".join(map(str, sorted(decoded.standby))) or "none",
        )
        self._hosts.assign(decoded.hosts, decoded.partitions)
        self._probing.set(decoded.probe_ms)
        await self.loop.assigned(decoded, generation)

    def _tasks_changed(self) -> None:
        self._status.become(State.RUNNING if self.loop.is_running else State.REBALANCING)

    async def _on_revoked(self, assignment: bytes, generation: int) -> None:
        await self.loop.revoked()

    async def _on_lost(self, assignment: bytes, generation: int) -> None:
        self._status.become(State.REBALANCING)
        await self.loop.lost()
