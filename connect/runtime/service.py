"""HerderService: the requests to a worker that are the same alone and in a group.

A subclass says where the records of a request go, who may serve it, and where statuses are. The documents
have the shapes of Kafka Connect's REST interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

from connect.api import SinkConnector, SourceConnector
from connect.errors import AlreadyExists, NotFound
from connect.herder import Herder, TargetState
from connect.herder.config_state import Properties
from connect.herder.restart_plan import RestartPlan
from connect.runtime.calls import PluginCalls
from connect.runtime.checked_configs import CheckedConfigs
from connect.runtime.client_settings import group_id
from connect.runtime.connector_offsets import (
    SourceOffsets,
    alter_sink_offsets,
    alter_source_offsets,
    check_stopped,
    parse_sink_offsets,
    reset_sink_offsets,
    reset_source_offsets,
    sink_offsets,
    source_offsets,
)
from connect.runtime.connector_types import ConnectorTypes
from connect.runtime.logger_levels import LoggerLevels
from connect.runtime.plugins import connector_class, named_version
from connect.runtime.stage import request_stage
from connect.runtime.worker_config import WorkerConfig
from connect.stores import ConfigRecord, OffsetStore
from connect.stores.config_records import Decision
from kafka_client import Admin

Document: TypeAlias = dict[str, Any]


class _ChangedMeanwhile(Exception):
    """A config is no longer the one that a request went by."""


class HerderService(ABC):
    """Requests about connectors, by what a herder knows of them."""

    def __init__(
        self, config: WorkerConfig, herder: Herder, configs: CheckedConfigs, loggers: LoggerLevels
    ) -> None:
        self.loggers = loggers
        self._worker_config = config
        self._herder = herder
        self._configs = configs
        self._types = ConnectorTypes()

    @abstractmethod
    async def _check_changing(self) -> None:
        """Return if this worker may make changes now. Raises Rebalancing or NotLeader."""

    @abstractmethod
    async def _change(self, decide: Decision, *, of_any_worker: bool = False) -> None:
        """Write the records that `decide` returns, once all earlier changes are done, and read them back.

        `of_any_worker`: True for a change that a worker may make which does not lead.
        """

    @abstractmethod
    def _rows(self, name: str) -> tuple[Document | None, Mapping[int, Document]]:
        """Return the status of a connector, None if it has none, and of its tasks by number."""

    @abstractmethod
    def _offset_store(self, config: Properties) -> OffsetStore:
        """Return the store of the source offsets of a connector with this config."""

    @abstractmethod
    def _admin(self, config: Properties) -> Admin:
        """Return an admin client for a connector's group; `config` has the values of its variables."""

    # --- reading ---

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        return list(self._herder.config.connectors)

    async def learn_types(self, names: Iterable[str]) -> None:
        """Have the types of connectors in the documents about them. One whose class hangs stays `unknown`."""
        connectors = self._herder.config.connectors
        configs = [connectors[name] for name in names if name in connectors]
        await self._types.learn([config for config in configs if self._configs.passed(config) is None])

    def connector_info(self, name: str) -> Document:
        """Return `{name, config, tasks: [{connector, task}], type}`."""
        config = self._config(name)
        tasks = [{"connector": name, "task": n} for n in range(len(self._tasks(name)))]
        return {"name": name, "config": dict(config), "tasks": tasks, "type": self._type_of(config)}

    def connector_status(self, name: str) -> Document:
        """Return `{name, connector: {state, worker_id, version, trace?}, tasks: [{id, ...}], type}`."""
        connector, tasks = self._rows(name)
        if connector is None:
            raise NotFound(f"No status found for connector {name}")
        config = self._herder.config.connectors.get(name, {})
        rows = [{"id": number, **tasks[number]} for number in sorted(tasks)]
        return {"name": name, "connector": connector, "tasks": rows, "type": self._type_of(config)}

    def task_configs(self, name: str) -> list[Document]:
        """Return `[{id: {connector, task}, config}]`."""
        self._config(name)
        return [
            {"id": {"connector": name, "task": number}, "config": dict(config)}
            for number, config in enumerate(self._tasks(name))
        ]

    def task_status(self, name: str, task: int) -> Document:
        """Return `{id, state, worker_id, version, trace?}`."""
        rows = self._rows(name)[1]
        if task not in rows:
            raise NotFound(f"No status found for task {name}-{task}")
        return {"id": task, **rows[task]}

    # --- changes ---

    async def create_connector(
        self, name: str, config: Mapping[str, str], initial_state: TargetState | None = None
    ) -> Document:
        """Create a connector and return its info. Raises AlreadyExists if there is one (KIP-980)."""
        await self._check_changing()

        def check_new() -> None:
            if name in self._herder.config.connectors:
                raise AlreadyExists(f"Connector {name} already exists")

        check_new()
        return await self._put(name, config, initial_state, check_new)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, Document]:
        """Create a connector or replace its config. Return True if it is new, and its info."""
        await self._check_changing()
        is_new = False

        def note_new() -> None:
            nonlocal is_new
            is_new = name not in self._herder.config.connectors

        info = await self._put(name, config, None, note_new)
        return is_new, info

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> Document:
        """Change some keys of a config, None deletes a key, and return the connector's info (KIP-477)."""
        await self._check_changing()
        while True:
            config = self._config(name)
            patched = {**config, **patch}

            def check_same(config: Properties = config) -> None:
                if self._config(name) != config:
                    raise _ChangedMeanwhile

            try:
                return await self._put(
                    name, {k: v for k, v in patched.items() if v is not None}, None, check_same
                )
            except _ChangedMeanwhile:
                continue  # another request changed the config while this one was validated

    async def delete_connector(self, name: str) -> None:
        """Delete a connector."""
        await self._check_changing()
        request_stage().enter(f"removing the config for connector {name} from the config topic")
        await self._change(lambda: self._herder.delete_connector(name))

    async def set_target(self, name: str, target: TargetState) -> None:
        """Start, pause or stop a connector."""
        request_stage().enter(
            f"writing the {target.value} target state for connector {name} to the config topic"
        )
        await self._change(
            lambda: self._herder.set_target(name, target),
            of_any_worker=target is not TargetState.STOPPED,  # a stop removes the tasks
        )

    async def connector_offsets(self, name: str) -> Document:
        """Return `{offsets: [{partition, offset}]}` (KIP-875)."""
        config = self._config(name)
        if await self._learned_type(config) == "sink":
            return await sink_offsets(*await self._sink_group(name, config))
        return await source_offsets(self._offset_store(config), name)

    async def alter_offsets(self, name: str, offsets: SourceOffsets) -> str:
        """Change offsets of a STOPPED connector, None deletes one. Return a message (KIP-875)."""
        config = await self._stopped(name)
        ask: Callable[[Any], Awaitable[bool | None]] = partial(self._ask_plugin, name, config)
        if await self._learned_type(config) == "sink":
            admin, group = await self._sink_group(name, config)
            return await alter_sink_offsets(admin, name, group, parse_sink_offsets(offsets), ask)
        return await alter_source_offsets(self._offset_store(config), name, offsets, ask)

    async def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a STOPPED connector. Return a message (KIP-875)."""
        config = await self._stopped(name)
        ask: Callable[[Any], Awaitable[bool | None]] = partial(self._ask_plugin, name, config)
        if await self._learned_type(config) == "sink":
            admin, group = await self._sink_group(name, config)
            return await reset_sink_offsets(admin, name, group, ask)
        return await reset_source_offsets(self._offset_store(config), name, ask)

    async def put_logger_level(self, logger: str, level: str) -> None:
        """Set a logger's level (KIP-976). Raises BadRequest for a level that there is not."""
        self.loggers.set(logger, level)

    async def _put(
        self, name: str, raw: Mapping[str, str], target: TargetState | None, check: Callable[[], None]
    ) -> Document:
        """Write a config that is valid, and return the info. `check` is called at its turn to be written."""
        stage = request_stage()
        stage.enter("validating connector configuration")
        checked = await self._configs.check({**raw, "name": name})
        self._types.note(checked.config, checked.type)
        stage.enter(f"writing a config for connector {name} to the config topic")

        def decide() -> list[ConfigRecord]:
            check()
            return self._herder.put_connector(name, checked.config, target)

        await self._change(decide)
        if name not in self._herder.config.connectors:  # deleted meanwhile, by another request
            return {"name": name, "config": dict(checked.config), "tasks": [], "type": checked.type}
        return self.connector_info(name)

    async def _stopped(self, name: str) -> Properties:
        """Return the config of a connector whose offsets may be changed.

        Raises BadRequest unless the connector is STOPPED, and its tasks have ended.
        """
        await self._check_changing()
        self._check_stopped(name)
        return self._config(name)

    def _check_stopped(self, name: str) -> None:
        """Raise BadRequest unless the connector is STOPPED, and its tasks have ended."""
        check_stopped(self._herder.config, name)

    async def _ask_plugin(self, name: str, config: Properties, offsets: Any) -> bool | None:
        """Call the plugin's `alter_offsets` on a connector that is not started."""
        request_stage().enter(f"modifying offsets for connector {name}")
        calls = PluginCalls(f"{name}-offsets")
        try:
            resolved = await calls.call(self._worker_config.providers.resolve, config)
            plugin: Any = await calls.call(connector_class, *named_version(config))
            connector: SourceConnector | SinkConnector = await calls.call(plugin)
            answer = await calls.call(connector.alter_offsets, resolved, offsets)
        finally:
            calls.close()
        self._check_stopped(name)  # it may have been resumed while the plugin worked
        return answer

    async def _sink_group(self, name: str, config: Properties) -> tuple[Admin, str]:
        """Return an admin client of the cluster that a sink reads from, and the sink's group."""
        calls = PluginCalls(f"{name}-offsets")
        try:
            values = await calls.call(self._worker_config.providers.resolve, config)
        finally:
            calls.close()
        resolved = {key: str(value) for key, value in values.items()}
        return self._admin(resolved), group_id(name, self._worker_config.raw, resolved)

    def _restart_plan(self, name: str, *, include_tasks: bool, only_failed: bool) -> RestartPlan:
        status = self.connector_status(name)
        return RestartPlan.of(status, include_tasks=include_tasks, only_failed=only_failed)

    def _type_of(self, config: Properties) -> str:
        """Return `source`, `sink` or, for a class that is not loaded, `unknown`."""
        checked = self._configs.passed(config)
        return self._types.of(config) if checked is None else checked.type

    async def _learned_type(self, config: Properties) -> str:
        """Return a connector's type, with its class loaded if it was not."""
        await self._types.learn([config])
        return self._type_of(config)

    def _config(self, name: str) -> Properties:
        if name not in self._herder.config.connectors:
            raise NotFound(f"Connector {name} not found")
        return self._herder.config.connectors[name]

    def _tasks(self, name: str) -> list[Properties]:
        return self._herder.config.task_configs(name)


def own_version() -> str:
    """Return Millstream's version, "unknown" for a source tree that is not installed."""
    try:
        return version("millstream")
    except PackageNotFoundError:
        return "unknown"
