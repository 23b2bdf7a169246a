"""DistributedWorker: one worker of a group: it runs the connectors and tasks that are assigned to it.

Each connector has up to two `WorkerConnector`s here: one for the connector itself, one for its tasks. So a
plugin whose planning hangs does not keep its tasks from stopping.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from connect.api.batch_source import BatchSourceTask
from connect.api.source import SourceTask
from connect.config.plugin_path import PLUGIN_PATH
from connect.config.rest import RestConfig
from connect.distributed.config import DistributedConfig
from connect.distributed.config_changes import ConfigChanges
from connect.distributed.config_checks import ConfigChecks
from connect.distributed.exactly_once import ExactlyOnce
from connect.distributed.fencing import ZombieFencing
from connect.distributed.load_meter import LoadMeter, Usage
from connect.distributed.local_runs import LocalRuns
from connect.distributed.lost_configs import LostConfigs
from connect.distributed.membership import WorkerGroup
from connect.distributed.plans import PlanSender, Request
from connect.distributed.reports import StatusReports
from connect.distributed.session_keys import SessionKeys
from connect.errors import MillstreamError, Rebalancing
from connect.group import Unit
from connect.group.load_report import LoadReport
from connect.herder import Herder, RestartRequest, Runs
from connect.herder.config_state import Properties
from connect.herder.restart_plan import RestartPlan
from connect.runtime.checked_configs import CheckedConfigs
from connect.runtime.clients import Clients
from connect.runtime.connector import WorkerConnector
from connect.runtime.connector_check import CheckedConfig
from connect.runtime.exactly_once_batch_task import exactly_once_task
from connect.runtime.isolation.messages import PluginPlace
from connect.runtime.isolation.process_task import ProcessTask
from connect.runtime.isolation.transaction_answers import TransactionAnswers
from connect.runtime.logger_levels import LoggerLevels
from connect.runtime.plugin_task import source_task
from connect.runtime.task import TaskSetting, WorkerTask
from connect.runtime.worker_keys import tell_unused
from connect.runtime.worker_metrics import DOMAIN, WorkerMetrics
from connect.runtime.worker_parts import Startings, WorkerParts
from connect.stores import (
    ConfigRecord,
    ConfigTopic,
    OffsetTopics,
    PrivilegedWriteError,
    StatusTopic,
    TopicUse,
)
from connect.stores.config_records import Decision
from kafka_client import Admin, Client
from kafka_client.metrics.metrics import Metrics

_log = logging.getLogger(__name__)
_FLUSH_SECONDS = 5.0


class DistributedWorker:
    """A worker of a group: `async with DistributedWorker(config, url=..., worker_id=..., request=...)`.

    `url`: the address of its REST interface for other workers. `worker_id`: its name in statuses, `host:port`
    as in Kafka. `request` sends a request to another worker; it blocks. `on_failed` is called with the error
    that ends the worker's membership.
    """

    def __init__(
        self,
        config: DistributedConfig,
        *,
        url: str,
        worker_id: str,
        request: Request,
        on_failed: Callable[[BaseException], None] = lambda error: None,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config
        PLUGIN_PATH.use(config.plugin_path)
        self.metrics = metrics or Metrics()
        self.worker_id = worker_id
        self.herder = Herder()
        self.loggers = LoggerLevels()
        self.failure: BaseException | None = None
        """The error that ended the membership."""
        self.client: Client
        self.statuses: StatusTopic
        self.offsets: OffsetTopics
        self.group: WorkerGroup
        self.cluster_id = ""
        self._configs: ConfigTopic
        self._url = url
        self._request = request
        self._on_failed = on_failed
        self._local = LocalRuns(self.herder)
        self._changes = ConfigChanges(write=self._write, read_to_end=lambda: self._configs.read_to_end())
        self.lost_configs = LostConfigs(
            self.herder,
            is_leader=lambda: self.group.is_leader,
            read_to_end=lambda: self._configs.read_to_end(),
            write=self._write,
            lock=self._changes.lock,
        )
        self._connectors: dict[str, WorkerConnector] = {}
        self._tasks: dict[str, WorkerConnector] = {}
        self.configs = CheckedConfigs(config)
        self._checks = ConfigChecks(self.configs, self._checked, self._check_is_slow)
        self._startings = Startings()
        self._meter = LoadMeter()
        self._closing = AsyncExitStack()
        self._keys = SessionKeys(
            config,
            self.herder,
            may_rotate=lambda: self.group.is_leader and self.group.is_signed,
            change=self.change,
        )
        self._is_following = False
        """True once the topics are read: requests before that are of another time."""
        tell_unused([DistributedConfig, RestConfig], config)

    async def __aenter__(self) -> DistributedWorker:
        try:
            await self._open()
        except BaseException:
            await self._closing.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._closing.aclose()

    async def _open(self) -> None:
        config, stack = self.config, self._closing
        clients = Clients(config, self.metrics)
        stack.push_async_callback(clients.close)
        self.client = client = await clients.worker(producing=False).connect()
        await clients.worker(producing=True).connect()
        self.cluster_id = (await client.metadata([])).cluster_id or ""
        exactly_once = config.exactly_once_source_enabled
        self.offsets = await OffsetTopics.open(client, config.offset_topic(), exactly_once=exactly_once)
        stack.push_async_callback(self.offsets.close)
        self.statuses = await StatusTopic.open(
            client, config.status_topic(), self._statuses_lost, self._topic_deleted
        )
        stack.push_async_callback(self.statuses.close)
        self._configs = await ConfigTopic.open(
            client,
            config.config_topic(),
            self._read,
            transactional_id=config.leader_transactional_id,
            isolation_level="read_committed" if exactly_once else "read_uncommitted",
            on_lost=self.lost_configs.note_loss,
        )
        stack.push_async_callback(self._configs.close)
        stack.push_async_callback(self._changes.close)
        stack.push_async_callback(self._checks.close)
        self._forget_requests()
        self._parts = WorkerParts(
            worker_id=self.worker_id,
            config=config,
            clients=clients,
            store=self.offsets.shared,
            new_source_task=self._new_source_task,
            new_process_task=self._new_process_task,
            startings=self._startings,
            on_change=lambda: None,
            on_plan=lambda name, configs: self._plans.send(name, configs),
            on_expired=self._restart_expired,
            note_topic=self._note_topic,
        )
        self.group = WorkerGroup(
            client, config, self.herder, self._configs, self._local, self, url=self._url, on_failed=self._fail
        )
        self._reports = StatusReports(self.statuses, self.worker_id, lambda: self.group.generation)
        self._plans = PlanSender(
            self, self.herder, self.change, self._request, config.inter_worker_signature_algorithm
        )
        self._exactly_once = self._new_exactly_once()
        stack.push_async_callback(self._fencing.close)
        metrics = WorkerMetrics(self._connectors, self._startings, self._tasks)
        stack.callback(metrics.add_to(self.metrics))
        rebalances = "connect-worker-rebalance-metrics", self.group.rebalance_values
        stack.callback(self.metrics.add(DOMAIN, *rebalances))
        stack.callback(
            self.metrics.add_each(
                DOMAIN, "connect-worker-rebalance-info", lambda: [(self.group.texts(), {"info": 1})]
            )
        )
        stack.push_async_callback(self._plans.close)
        stack.push_async_callback(self.group.close)
        self._restoring = asyncio.create_task(self.lost_configs.run(), name="lost configs")
        stack.callback(self._restoring.cancel)
        self._keys.note_first()
        self._rotating = asyncio.create_task(self._keys.run(), name="session keys")
        stack.callback(self._rotating.cancel)
        self._is_following = True
        await self.group.start()

    # --- what the group asks ---

    def apply(self) -> None:
        """Bring what runs to what should run, in the background."""
        PLUGIN_PATH.rescan()  # other workers may have upgraded what comes here now
        running = {*self._connectors, *self._tasks}
        self.configs.retain(running)
        for name in {*self._local.names(), *running}:
            self._reconcile(name)

    async def freed(self) -> None:
        """Wait until everything has stopped that should not run, and its statuses are stored."""
        await asyncio.gather(*(each.freed() for each in (*self._connectors.values(), *self._tasks.values())))
        for parts in (self._connectors, self._tasks):
            for name in [name for name, part in parts.items() if part.is_over]:
                del parts[name]
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self.statuses.flush()
        except (TimeoutError, MillstreamError) as e:
            _log.warning("statuses are not stored yet: %r", e)

    async def assigned(self, *, is_leader: bool) -> None:
        """Delete the statuses of deleted connectors and tasks, if this worker leads."""
        if not is_leader:
            await self._configs.relinquish()
            return
        try:
            await self._configs.claim()
        except PrivilegedWriteError as e:
            _log.warning("the next write to the config topic tries again: %s", e)
        for name in self.statuses.connectors() - self.herder.config.connectors.keys():
            self._reports.delete(name)
        for name, count in self.herder.units().items():
            for task in self.statuses.tasks(name):
                if task >= count:
                    self.statuses.delete(name, task)
        self._keys.wake()
        for unit, reason in self.group.unplaced().items():
            self._reports.unplaced(unit, reason)

    def load_report(self) -> bytes:
        """Return this worker's labels and its tasks' loads, if it places by load."""
        if self.config.placement != "load":
            return b""
        usages = (
            (
                Unit(name, task.setting.task_id),
                id(task),
                Usage(task.calls.cpu_seconds, task.rate.byte_count),
            )
            for name, connector in self._tasks.items()
            for task in connector.tasks
        )
        costs = self._meter.measure(usages)
        return LoadReport(labels=tuple(self.config.placement_labels), costs=costs).encode()

    def leader_url(self) -> str | None:
        """Return the leader's address, None if this worker leads. Raises Rebalancing if there is none now."""
        return self.group.leader_url()

    def has_connector(self, name: str) -> bool:
        """Return True if this worker runs the connector."""
        return Unit(name) in self._local.units and name in self.herder.config.connectors

    def has(self, unit: Unit) -> bool:
        """Return True if a connector or task is assigned to this worker."""
        return unit in self._local.units

    # --- configs ---

    async def fence_zombies(self, name: str) -> None:
        """Return once no older task of a source can write, if this worker leads. Raises ConnectError."""
        await self._fencing.fence(name)

    @property
    def is_current(self) -> bool:
        """True if the group's coordinator has lately confirmed this worker's membership."""
        return self.group.is_current

    async def change(self, decide: Decision) -> None:
        """Write the records that `decide` returns, and return once they are read back.

        Changes are decided and written one after the other. Raises what `decide` raises, and Rebalancing if
        another worker may lead by now: nothing is written then, and this worker asks its group.
        """
        await self._changes.make(decide)

    async def _write(self, records: Sequence[ConfigRecord]) -> None:
        try:
            await self._configs.write(records)
        except PrivilegedWriteError as e:
            _log.warning("the config topic is not written, and this worker joins its group again: %s", e)
            self.group.rejoin()
            raise Rebalancing(f"Cannot complete request: the config topic takes no writes now: {e}") from e

    def restart(self, name: str, tasks: Iterable[int], *, connector: bool) -> None:
        """Start some tasks of this worker's, or the connector itself, again. Raises NotFound."""
        self.configs.expect_upgrade(name)
        self.herder.restart(name, tasks, connector=connector)
        self._reconcile(name)

    def _restart_expired(self, name: str, number: int) -> None:
        unit = Unit(name, number)
        if self.has(unit) and name in self.herder.config.connectors:
            self.herder.restart(name, [] if unit.is_connector else [number], connector=unit.is_connector)
            self._reconcile(name)

    def _read(self, records: Sequence[ConfigRecord]) -> None:
        """Take records that were read from the config topic."""
        changed = self.herder.read(records)
        self.lost_configs.note(records)
        self._keys.note()
        if not self._is_following:
            return
        for name in changed:
            self._reconcile(name)
        self.group.note_configs()
        requests = self.herder.config.requests
        for logger, level in requests.take_logger_levels().items():
            try:
                self.loggers.set(logger, level)
            except MillstreamError as e:
                _log.warning("the level of logger %s is not changed: %s", logger, e)
        for request in requests.take_restarts():
            self._restart_requested(request)

    def _forget_requests(self) -> None:
        self.herder.config.requests.take_restarts()
        self.herder.config.requests.take_logger_levels()

    def _restart_requested(self, request: RestartRequest) -> None:
        """Restart this worker's part; the other workers restart theirs, by the same statuses."""
        name = request.connector
        connector = self.statuses.get(name)
        if connector is None or name not in self.herder.config.connectors:
            _log.warning("connector %s is not restarted: it has no status", name)
            return
        status = {
            "connector": {"state": connector.state},
            "tasks": [{"id": n, "state": each.state} for n, each in self.statuses.tasks(name).items()],
        }
        plan = RestartPlan.of(status, include_tasks=request.include_tasks, only_failed=request.only_failed)
        units = [Unit(name)] if plan.connector else []
        units += [Unit(name, task) for task in plan.tasks]
        own = [unit for unit in units if self.has(unit)]
        for unit in own:
            self._reports.restarting(unit)
        count = len(self.herder.config.task_configs(name))
        tasks = [unit.task for unit in own if 0 <= unit.task < count]
        if own:
            self.restart(name, tasks, connector=any(unit.is_connector for unit in own))

    # --- running ---

    def _reconcile(self, name: str) -> None:
        config = self.herder.config.connectors.get(name)
        is_here = config is not None and not all(runs.is_empty for runs, _ in self._parts_of(name))
        self._bring(name, self._checks.passed(name, config) if config is not None and is_here else None)

    def _parts_of(self, name: str) -> list[tuple[Runs, dict[str, WorkerConnector]]]:
        """Return what should run of a connector and of its tasks here, each with where it runs."""
        return [
            (self._local.connector(name), self._connectors),
            (self._local.tasks(name), self._tasks),
        ]

    def _bring(self, name: str, checked: CheckedConfig | None) -> None:
        """Bring what runs to what should run; nothing is started while the config is not checked."""
        for runs, parts in self._parts_of(name):
            existing = parts.get(name)
            if existing is None and checked is not None and not runs.is_empty:
                report = self._report_connector if parts is self._connectors else self._report_tasks
                own = replace(self._parts, on_change=partial(report, name))
                existing = parts[name] = WorkerConnector(own, checked)
            if existing is not None:
                existing.reconcile(checked, runs)

    def _checked(self, name: str, config: Properties, result: CheckedConfig | Exception) -> None:
        """Go on with the result of a check, if the config is still the connector's."""
        if self.herder.config.connectors.get(name) != config:
            return
        if not isinstance(result, Exception):
            self._reconcile(name)
            return
        for runs, parts in self._parts_of(name):
            self._refuse(name, runs, result)
            if name in parts:
                parts[name].reconcile(None, Runs())

    def _check_is_slow(self, name: str, config: Properties, problem: str) -> None:
        """Store that a connector and its tasks are not started yet, and why."""
        if self.herder.config.connectors.get(name) == config:
            for unit in sorted(unit for unit in self._local.units if unit.connector == name):
                self._reports.unplaced(unit, problem)

    def _refuse(self, name: str, runs: Runs, error: Exception) -> None:
        """Store as FAILED what cannot run because the connector's config is not valid on this worker."""
        units = [Unit(name)] if runs.connector is not None else [Unit(name, task) for task in runs.tasks]
        if units:
            _log.error("%s cannot run: %r", name, error)
        for unit in units:
            self._reports.failed(unit, error)

    def _new_exactly_once(self) -> ExactlyOnce:
        config, configs = self.config, self._configs
        self._fencing = ZombieFencing(
            self.client, config.group_id, self.herder, read_to_end=configs.read_to_end, change=self.change
        )
        algorithm = config.inter_worker_signature_algorithm
        return ExactlyOnce(
            self, config.group_id, self.herder, configs, self._fencing, self._request, algorithm
        )

    def _new_source_task(
        self, setting: TaskSetting, task: SourceTask | BatchSourceTask, on_change: Callable[[], None]
    ) -> WorkerTask:
        store = self.offsets.of(setting.connector_config.get("offsets.storage.topic"))
        if self.config.exactly_once_source_enabled:
            return exactly_once_task(setting, task, store, self._exactly_once, on_change=on_change)
        return source_task(setting, task, store, on_change=on_change)

    def _new_process_task(
        self, setting: TaskSetting, place: PluginPlace | None, on_change: Callable[[], None]
    ) -> WorkerTask:
        store = self.offsets.of(setting.connector_config.get("offsets.storage.topic"))
        transactions = (
            TransactionAnswers(setting.connector, setting.task_id, store, self._exactly_once)
            if self.config.exactly_once_source_enabled
            else None
        )
        return ProcessTask(setting, store, place=place, transactions=transactions, on_change=on_change)

    def _report_connector(self, name: str) -> None:
        if name in self._connectors:
            self._reports.connector(self._connectors[name])

    def _report_tasks(self, name: str) -> None:
        if name in self._tasks:
            self._reports.tasks(self._tasks[name])

    def _statuses_lost(self, partition: int) -> None:
        """Store the statuses of what runs here again, and the topics that it uses."""
        if self._is_following:
            self._reports.again()
            for use in [use for name in self._tasks for use in self.statuses.topics(name)]:
                self.statuses.put_topic(use)

    def _topic_deleted(self, connector: str) -> None:
        """Have the connector's tasks tell again which topics they use: those were reset."""
        if connector in self._tasks:
            self._tasks[connector].forget_topics()

    def _note_topic(self, connector: str, task: int, topic: str) -> None:
        """Store that a connector uses a topic, unless it is stored (KIP-558)."""
        if connector not in self.herder.config.connectors:
            return  # its task is being stopped: the connector is deleted
        if all(use.topic != topic for use in self.statuses.topics(connector)):
            discovered_ms = int(time.time() * 1000)
            self.statuses.put_topic(
                TopicUse(topic=topic, connector=connector, task=task, discovered_ms=discovered_ms)
            )

    def _fail(self, error: BaseException) -> None:
        _log.error("the worker's membership in %s has ended: %r", self.config.group_id, error)
        self.failure = error
        self._local.revoke(self._local.units)
        self.apply()
        self._on_failed(error)

    def admin(self, config: Properties) -> Admin:
        """Return an admin client with the settings of a connector with this config, by KIP-458."""
        return Admin(self._parts.clients.admin(config))
