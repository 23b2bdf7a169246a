"""The standalone worker: connectors in one process, source offsets in a file."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from connect.config import SinkConfig
from connect.config.plugin_path import PLUGIN_PATH
from connect.config.rest import RestConfig
from connect.errors import ConfigError, NotFound
from connect.herder import Herder, TargetState
from connect.herder.config_state import Properties
from connect.herder.herder import ConfigRecord
from connect.runtime.checked_configs import CheckedConfigs
from connect.runtime.client_settings import group_id
from connect.runtime.clients import Clients
from connect.runtime.connector import WorkerConnector
from connect.runtime.isolation.process_task import ProcessTask
from connect.runtime.range_task import WorkerRangeTask
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.stage import Stage, request_stage
from connect.runtime.states import State
from connect.runtime.topics_regex import matches
from connect.runtime.worker_config import WorkerConfig
from connect.runtime.worker_keys import tell_unused
from connect.runtime.worker_metrics import WorkerMetrics
from connect.runtime.worker_parts import Startings, WorkerParts
from connect.stores import FileOffsetStore, OffsetStore
from kafka_client import Admin, TopicPartition
from kafka_client.errors import BROKER_AWAY
from kafka_client.metrics.metrics import Metrics
from kafka_client.properties import CLIENT, ClientProperties

_log = logging.getLogger(__name__)
_CHECK_SECONDS = 0.1


class Worker:
    """A standalone worker: `async with Worker(config) as worker:`, then `start_connector` for each connector.

    `on_change` is called after each change of a state; `status()` returns the states. `metrics` is the
    registry of the worker's, its tasks' and their clients' metrics, by default a new one. `worker_id` is its
    name in statuses, by default host and process.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *,
        on_change: Callable[[], None] = lambda: None,
        metrics: Metrics | None = None,
        worker_id: str | None = None,
    ) -> None:
        self.config = config
        self.metrics = metrics or Metrics()
        self.worker_id = worker_id or f"{socket.gethostname()}:{os.getpid()}"
        PLUGIN_PATH.use(config.plugin_path)
        self._on_change = on_change
        self._changed = asyncio.Event()
        self._connectors: dict[str, WorkerConnector] = {}
        self.herder = Herder()
        """The connectors' configs and targets, in memory."""
        self.topics: dict[str, set[str]] = {}
        """The topics that each connector has used (KIP-558)."""
        self.configs = CheckedConfigs(config)
        self._startings = Startings()
        self._registrations = ExitStack()
        """Removes this worker's metrics from the registry."""
        tell_unused([WorkerConfig, RestConfig], config)
        ClientProperties.layered(config.raw, "admin.").tell_rest(CLIENT)

    async def __aenter__(self) -> Worker:
        self._store = FileOffsetStore.open(Path(self.config.offset_storage_file_filename))
        self._clients = Clients(self.config, self.metrics)
        worker_metrics = WorkerMetrics(self._connectors, self._startings)
        self._registrations.callback(worker_metrics.add_to(self.metrics))
        try:
            self._client = await self._clients.worker(producing=False).connect()
            await self._clients.worker(producing=True).connect()
        except BaseException:
            await self._close()
            raise
        self._cluster_id = (await self._client.metadata([])).cluster_id or ""
        self._parts = WorkerParts(
            worker_id=self.worker_id,
            config=self.config,
            clients=self._clients,
            store=self._store,
            startings=self._startings,
            on_change=self._note_change,
            on_plan=self._take_plan,
            on_expired=self._restart_expired,
            note_topic=lambda connector, task, topic: self.topics.setdefault(connector, set()).add(topic),
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.gather(*(connector.close() for connector in self._connectors.values()))
        await self._close()

    async def _close(self) -> None:
        self._registrations.close()
        await self._clients.close()
        self._store.close()

    async def start_connector(self, raw: Mapping[str, Any]) -> str:
        """Start a connector and return its name.

        Raises ConfigError or NotFound for an invalid config; later failures are in its status.
        """
        (name,) = await self.start_connectors([raw])
        return name

    async def start_connectors(self, raws: Iterable[Mapping[str, Any]]) -> list[str]:
        """Start connectors, as `start_connector` does. One that hangs keeps the others from nothing."""
        names: list[str] = []
        for raw in raws:
            checked = await self.configs.check(raw)
            if checked.name in self._connectors:
                raise ConfigError("name", checked.name, "is the name of another connector already")
            self._apply(self.herder.put_connector(checked.name, checked.config))
            names.append(checked.name)
        await self._settled(*names)
        return names

    @property
    def stage(self) -> Stage | None:
        """The step that a connector's start or change waits for; None if everything is settled."""
        return _first_stage(self._connectors.values())

    async def write(self, records: Iterable[ConfigRecord]) -> None:
        """Apply records of the herder's, and wait until everything runs as it should or has failed."""
        await self._settled(*self._apply(records))

    async def delete_connector(self, name: str) -> None:
        """Stop and remove a connector. Its offsets remain stored. Raises NotFound if there is none."""
        self._apply(self.herder.delete_connector(name))
        self._follow_stage(self._connectors[name])
        await self._connectors[name].close()
        del self._connectors[name]
        self.configs.forget(name)
        self.topics.pop(name, None)

    async def restart_connector(self, name: str) -> None:
        """Stop a connector and its tasks and start them again, in their target state."""
        await self.restart(name, range(len(self.herder.runs(name).tasks)), connector=True)

    async def restart(self, name: str, tasks: Iterable[int], *, connector: bool) -> None:
        """Stop some tasks and, if asked, the connector itself, and start them again.

        Raises NotFound if there is no such connector or task, ConnectError if too many of the plugin's calls
        have not returned.
        """
        self._connector(name).check_abandoned()
        await self._upgrade(name)
        self.herder.restart(name, tasks, connector=connector)
        self._reconcile(name)
        await self._settled(name)

    async def restart_task(self, name: str, task_id: int) -> None:
        """Stop one task and start it again from its committed offsets, for example after a failure.

        A paused connector's task is paused again. Raises NotFound if there is no such task, ConnectError if
        too many of the plugin's calls have not returned.
        """
        connector = self._connector(name)
        await self._upgrade(name)
        self.herder.restart(name, [task_id], connector=False)
        self._reconcile(name)
        await self._settled(name)
        connector.check_abandoned()

    async def _upgrade(self, name: str) -> None:
        """Find the connector's plugin again, as there may be another version of it by now.

        Raises ConfigError or NotFound if it cannot be loaded; the connector runs on as it did.
        """
        if name in self.herder.config.connectors:
            self.configs.expect_upgrade(name)
            await self.configs.check(self.herder.config.connectors[name])

    async def _settled(self, *names: str) -> None:
        connectors = [self._connectors[name] for name in names]
        self._follow_stage(*connectors)
        await asyncio.gather(*(connector.settled() for connector in connectors))

    def _follow_stage(self, *connectors: WorkerConnector) -> None:
        """Have the steps of connectors be the stage of the present request."""
        request_stage().follow(lambda: _first_stage(connectors))

    def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector has used; those in use come back with the next records."""
        self.topics.pop(name, None)
        if name in self._connectors:
            self._connectors[name].forget_topics()

    def pause_connector(self, name: str) -> None:
        """Pause a connector and its tasks, until it is resumed; the tasks keep their resources."""
        self._apply(self.herder.set_target(name, TargetState.PAUSED))

    def stop_connector(self, name: str) -> None:
        """Stop a connector and remove its tasks, until it is resumed; its config remains."""
        self._apply(self.herder.set_target(name, TargetState.STOPPED))

    def resume_connector(self, name: str) -> None:
        """Resume a connector that is paused or stopped; its tasks are planned again."""
        self._apply(self.herder.set_target(name, TargetState.STARTED))

    def status(self) -> list[dict[str, Any]]:
        """Return every connector's status report, in the order of their starts."""
        return [connector.report() for connector in self._connectors.values()]

    @property
    def failed(self) -> bool:
        """True if a connector or a task is FAILED."""
        return any(
            State.FAILED in (c.status.state, *(t.status.state for t in c.tasks))
            for c in self._connectors.values()
        )

    async def wait_done(self) -> None:
        """Wait until every source has ended with all records acknowledged, and sinks have committed the rest.

        Sinks commit up to the log ends at the sources' end. Return at once if anything has FAILED: see
        `failed`.
        """
        while not self.failed and not all(t.is_done for c in self._of("source") for t in c.tasks):
            self._changed.clear()
            await self._changed.wait()
        behind: dict[str, Mapping[TopicPartition, int]] | None = None
        while not self.failed and behind != {}:
            try:
                if behind is None:
                    behind = {c.name: await self._ends(c) for c in self._of("sink")}
                await self._remove_caught_up(behind)
            except BROKER_AWAY as e:
                _log.warning("waiting for the broker: %s", e)
            await asyncio.sleep(_CHECK_SECONDS)

    async def _remove_caught_up(self, behind: dict[str, Mapping[TopicPartition, int]]) -> None:
        for connector in self._of("sink"):
            for task in connector.tasks:
                if isinstance(task, (WorkerSinkTask, WorkerRangeTask, ProcessTask)):
                    task.request_commit()
            if connector.name in behind and await self._caught_up(connector, behind[connector.name]):
                del behind[connector.name]

    def report(self, name: str) -> dict[str, Any]:
        """Return one connector's status report. Raises NotFound if there is none."""
        return self._connector(name).report()

    @property
    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        return self._cluster_id

    @property
    def store(self) -> OffsetStore:
        """The store of source offsets."""
        return self._store

    def admin(self, config: Properties) -> Admin:
        """Return an admin client with the settings of a connector with this config, by KIP-458."""
        return Admin(self._clients.admin(config))

    def _apply(self, records: Iterable[ConfigRecord]) -> list[str]:
        """Read records of the config topic back at once. Return the names of changed connectors."""
        changed = self.herder.read(records)
        for name in changed:
            self._reconcile(name)
        return changed

    def _reconcile(self, name: str) -> None:
        runs, connector = self.herder.runs(name), self._connectors.get(name)
        if runs.connector is None:
            if connector is not None:
                connector.reconcile(connector.checked, runs)
            return
        checked = self.configs.passed(runs.connector.config)
        if connector is None:
            assert checked is not None, "a config is checked before it is written"
            connector = self._connectors[name] = WorkerConnector(self._parts, checked)
        connector.reconcile(checked or connector.checked, runs)

    def _take_plan(self, name: str, task_configs: Sequence[Properties]) -> None:
        self._apply(self.herder.put_plan(name, task_configs))

    def _restart_expired(self, name: str, number: int) -> None:
        if name in self.herder.config.connectors:
            is_task = number >= 0
            self.herder.restart(name, [number] if is_task else [], connector=not is_task)
            self._reconcile(name)

    def _note_change(self) -> None:
        self._changed.set()
        self._on_change()

    def _of(self, type: str) -> list[WorkerConnector]:
        return [c for c in self._connectors.values() if c.type == type]

    def _connector(self, name: str) -> WorkerConnector:
        if name not in self._connectors:
            raise NotFound(f"no connector {name}")
        return self._connectors[name]

    def _resolved(self, connector: WorkerConnector) -> Mapping[str, Any]:
        """Return the config of a connector with the values of its variables."""
        return self.config.providers.resolve(connector.checked.config)

    async def _ends(self, connector: WorkerConnector) -> dict[TopicPartition, int]:
        """Return the last stable offsets of a sink's partitions that have records."""
        sink = SinkConfig.parse(connector.checked.config)
        admin = Admin(self._clients.of("sink", self._resolved(connector)))
        listed = await admin.list_topics()
        pattern = sink.topics_pattern
        topics = [
            name
            for name, topic in listed.items()
            if (matches(pattern, topic) if pattern else name in sink.topics)
        ]
        partitions = [TopicPartition(t, p) for t in topics for p in listed[t].partitions]
        starts = await admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"), isolation_level="read_committed")
        return {tp: ends[tp].offset for tp in partitions if ends[tp].offset > starts[tp].offset}

    async def _caught_up(self, connector: WorkerConnector, ends: Mapping[TopicPartition, int]) -> bool:
        config = self._resolved(connector)
        group = group_id(connector.name, self.config.raw, config)
        committed = await Admin(self._clients.of("sink", config)).list_group_offsets(group)
        return all(tp in committed and committed[tp].offset >= end for tp, end in ends.items())


def _first_stage(connectors: Iterable[WorkerConnector]) -> Stage | None:
    return next((each.stage for each in connectors if each.stage is not None), None)
