"""A running connector: the plugin's connector object and its tasks."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connect.api.range_sink import RangeSinkTask
from connect.api.sink import SinkConnector, SinkTask
from connect.api.source import ConnectorContext, SourceConnector, SourceTask
from connect.config import (
    REFUSED,
    Config,
    ConnectorConfig,
    SinkConfig,
    SourceConfig,
    refuse_unsupported,
    unknown_keys,
    without_effect,
)
from connect.converters import unknown_settings
from connect.errors import ConfigError, ConnectError
from connect.runtime.calls import PluginCalls
from connect.runtime.client_settings import client_arguments, consumer_arguments, producer_arguments
from connect.runtime.clients import ROLES, Clients
from connect.runtime.conversion import Conversion
from connect.runtime.plugins import ConnectorClass, connector_class, connector_type
from connect.runtime.range_task import WorkerRangeTask
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State, Status
from connect.runtime.task import TaskSetting, WorkerTask
from connect.runtime.task_metrics import Startups
from connect.runtime.topic_creation import creation_prefixes, creation_rules
from connect.runtime.worker_config import WorkerConfig
from connect.stores import OffsetStore
from kafka_client import Admin
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_CONVERTERS = ("key.converter.", "value.converter.", "header.converter.")
_CLIENTS = ("admin.", "consumer.", "producer.")
ABANDONED_MAX = 16
"""Bound of a connector's earlier runs with calls that do not return; beyond it nothing is started."""


@dataclass(frozen=True, slots=True)
class Startings:
    """Counts of the starts of a worker's connectors and tasks."""

    connectors: Startups = field(default_factory=Startups)
    tasks: Startups = field(default_factory=Startups)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The parts of a worker that its connectors use."""

    worker_id: str
    config: WorkerConfig
    clients: Clients
    store: OffsetStore
    on_change: Callable[[], None]
    startings: Startings = field(default_factory=Startings)


class WorkerConnector:
    """A connector in a worker. Call `start()`, then `stop()`; `status` has its failure."""

    def __init__(self, parts: WorkerParts, raw: Mapping[str, Any]) -> None:
        """Check the config. Raises ConfigError or NotFound if it is not valid."""
        common = ConnectorConfig.parse(raw)
        self.name = common.name
        self.plugin: ConnectorClass = connector_class(common.connector_class)
        self.type = connector_type(self.plugin)
        declarations: list[type[Config]] = [
            SourceConfig if self.type == "source" else SinkConfig,
            self.plugin.CONFIG,
        ]
        for declaration in declarations:
            declaration.parse(raw)
        refuse_unsupported(raw, self.type)
        self._check_shared(parts.config, raw)
        self._warn_unused(declarations, raw)
        self.config = {key: _text(value) for key, value in raw.items()}
        self.status = Status(parts.on_change)
        self.tasks: list[WorkerTask] = []
        self._parts = parts
        self._tasks_max = common.tasks_max
        self._task_configs: list[dict[str, str]] = []
        self._connector: SourceConnector | SinkConnector | None = None
        self._changing = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._is_replan_due = False
        self._plugin_calls = PluginCalls(self.name)
        self._abandoned: list[PluginCalls] = []

    async def start(self) -> None:
        """Start the plugin's connector and its tasks. An error is not raised: it fails `status`."""
        async with self._changing:
            self._track_abandoned([self._plugin_calls])
            self._plugin_calls = PluginCalls(self.name)
            loop = asyncio.get_running_loop()
            replan = functools.partial(_call_soon, loop, self._reconfigure_soon)
            try:
                self._check_abandoned()
                self._connector = connector = self.plugin()
                connector.context = ConnectorContext(connector=self.name, request_task_reconfiguration=replan)
                await self._plugin_calls.call(connector.start, self.config)
                self._task_configs = await self._plan(connector)
                self.tasks = self._make_tasks()
            except Exception as e:
                _log.error("%s failed: %r", self.name, e)
                self._parts.startings.connectors.failed += 1
                self.status.fail(e)
                return
            self._parts.startings.connectors.succeeded += 1
            self.status.become(State.RUNNING)
            self._launch_tasks()

    async def stop(self) -> None:
        """Stop tasks, then the connector. May be called twice."""
        for task in self._background:
            task.cancel()  # a call of task_configs that may hang
        self._is_replan_due = False
        async with self._changing:
            if self._connector is None:
                return
            await self._stop_tasks()
            grace = self._parts.config.task_shutdown_graceful_timeout_ms / 1000
            try:
                async with asyncio.timeout(grace):
                    await self._plugin_calls.call(self._connector.stop)
            except Exception as e:
                _log.warning("%s did not stop cleanly: %r", self.name, e)
            self._plugin_calls.close()
            self._connector = None
            if self.status.state is not State.FAILED:
                self.status.become(State.UNASSIGNED)

    async def restart(self) -> None:
        """Stop, then start again with the same config."""
        await self.stop()
        self.status.become(State.RESTARTING)
        await self.start()

    async def restart_task(self, task_id: int) -> None:
        """Stop one task and run it again from its committed offsets."""
        async with self._changing:
            await self.tasks[task_id].stop()
            self._track_abandoned([self.tasks[task_id].calls])
            self.tasks[task_id] = self._make_task(task_id)
            self.tasks[task_id].launch()

    def pause(self) -> None:
        """Pause the tasks; they keep their resources."""
        self.status.become(State.PAUSED)
        for task in self.tasks:
            task.pause()

    def resume(self) -> None:
        """Resume the tasks after a pause."""
        self.status.become(State.RUNNING)
        for task in self.tasks:
            task.resume()

    def calls(self) -> Values:
        """Return the plugin's `PluginCalls.statistics` and how many earlier runs have unreturned calls."""
        self._track_abandoned(())
        return {
            **self._plugin_calls.statistics(),
            "abandoned": len(self._abandoned),
            "abandoned_max": ABANDONED_MAX,
        }

    def report(self) -> dict[str, Any]:
        """Return the response of GET /connectors/{c}/status, with counts beside each task's state."""
        worker_id, version = self._parts.worker_id, self.plugin.VERSION
        tasks = [
            {"id": i, **task.status.report(worker_id, version), "done": task.is_done, **task.statistics()}
            for i, task in enumerate(self.tasks)
        ]
        connector = self.status.report(worker_id, version)
        return {"name": self.name, "connector": connector, "tasks": tasks, "type": self.type}

    def _check_shared(self, worker: WorkerConfig, raw: Mapping[str, Any]) -> None:
        """Raise ConfigError for settings of converters, clients and topics that would fail in every task."""
        if not issubclass(getattr(self.plugin, "task_class", object), RangeSinkTask):
            Conversion.configured(worker, raw)
            self._warn_converters(worker, raw)
        client_arguments(worker.raw, raw, ROLES[self.type])
        if self.type == "source":
            producer_arguments(worker.raw, raw)
            creation_rules(raw)
        else:
            consumer_arguments(worker.raw, raw)

    def _warn_unused(self, declarations: Sequence[type[Config]], raw: Mapping[str, Any]) -> None:
        """Log keys without effect: Kafka's in one line, each unknown key with the most similar valid one."""
        of_others = [*_CONVERTERS, f"{ROLES[self.type]}.override.", *self.plugin.CONFIG.PREFIXES]
        if self.type == "source":
            of_others += creation_prefixes(raw)
        kafkas = sorted(REFUSED | without_effect(self.type))
        unused = [key for key in raw if key in without_effect(self.type)]
        for key, nearest in unknown_keys(declarations, raw, of_others, kafkas).items():
            if key.startswith(_CLIENTS):
                unused.append(key)
            else:
                _log.warning("%s: %s is not known%s", self.name, key, f"; {nearest}?" if nearest else "")
        if unused:
            _log.warning("%s: without effect here: %s", self.name, ", ".join(sorted(unused)))

    def _warn_converters(self, worker: WorkerConfig, raw: Mapping[str, Any]) -> None:
        for which in ("key.converter", "value.converter", "header.converter"):
            prefix = which + "."
            if not raw.get(which):
                for key in (key for key in raw if key.startswith(prefix)):
                    _log.warning("%s: %s has no effect: it goes with a %s here", self.name, key, which)
            for key, nearest in unknown_settings(which, *worker.converter_config(which, dict(raw))).items():
                hint = f"; {prefix}{nearest}?" if nearest else ""
                _log.warning("%s: %s%s is not known%s", self.name, prefix, key, hint)

    async def _plan(self, connector: SourceConnector | SinkConnector) -> list[dict[str, str]]:
        configs: list[dict[str, str]] = await self._plugin_calls.call(connector.task_configs, self._tasks_max)
        if len(configs) > self._tasks_max:
            raise ConnectError(f"{self.name} planned {len(configs)} tasks, tasks.max is {self._tasks_max}")
        return configs

    def _reconfigure_soon(self) -> None:
        """Schedule a reconfiguration, unless one waits already; one may wait while another runs."""
        if self._is_replan_due:
            return
        self._is_replan_due = True
        task = asyncio.create_task(self._reconfigure())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _reconfigure(self) -> None:
        """Call the plugin's `task_configs` again, and replace the tasks if the result differs."""
        async with self._changing:
            self._is_replan_due = False
            if self._connector is None or self.status.state is not State.RUNNING:
                return
            try:
                configs = await self._plan(self._connector)
                if configs != self._task_configs:
                    await self._stop_tasks()
                    self._task_configs = configs
                    self.tasks = self._make_tasks()
                    self._launch_tasks()
            except Exception as e:
                _log.error("%s failed: %r", self.name, e)
                self.status.fail(e)

    def _track_abandoned(self, ended: Iterable[PluginCalls]) -> None:
        """Keep track of the `ended` and earlier runs that have calls without return."""
        self._abandoned = [each for each in (*self._abandoned, *ended) if each.statistics()["calls"]]

    def _check_abandoned(self) -> None:
        self._track_abandoned(())
        if len(self._abandoned) > ABANDONED_MAX:
            raise ConnectError(
                f"{self.name}: calls of {len(self._abandoned)} earlier runs have not returned: the plugin "
                "hangs; restart the worker once that is mended"
            )

    def _make_tasks(self) -> list[WorkerTask]:
        self._track_abandoned(task.calls for task in self.tasks)
        return [self._make_task(i) for i in range(len(self._task_configs))]

    def _launch_tasks(self) -> None:
        for task in self.tasks:
            task.launch()

    async def _stop_tasks(self) -> None:
        await asyncio.gather(*(task.stop() for task in self.tasks))

    def _make_task(self, task_id: int) -> WorkerTask:
        self._check_abandoned()
        parts = self._parts
        client = parts.clients.of(self.type, self.config)
        setting = TaskSetting(
            connector=self.name,
            task_id=task_id,
            config=self._task_configs[task_id],
            connector_config=self.config,
            worker=parts.config,
            client=client,
            admin=Admin(client),
            startups=parts.startings.tasks,
        )
        task = self.plugin.task_class()
        match self.type, task:
            case "source", SourceTask():
                return WorkerSourceTask(setting, task, parts.store, on_change=parts.on_change)
            case "sink", SinkTask():
                return WorkerSinkTask(setting, task, on_change=parts.on_change)
            case "sink", RangeSinkTask():
                return WorkerRangeTask(setting, task, on_change=parts.on_change)
        raise ConfigError("connector.class", self.plugin.__name__, f"its task_class is no {self.type} task")


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(function)


def _text(value: object) -> str:
    """Return a config value as the text connectors get; JSON configs may have numbers and lists."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
