"""A worker in memory, for the REST interface's routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connect.errors import AlreadyExists, BadRequest, NotFound
from connect.herder import TargetState
from connect.rest.service import Document, Health
from connect.runtime.logger_levels import LoggerLevels


class FakeService:
    """Connectors with a task each, whose state is their target's. `failure` is raised by what changes."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.targets: dict[str, TargetState] = {}
        self.offsets: list[Document] = []
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.loggers = LoggerLevels()
        self.state: tuple[Health, str] = ("healthy", "Worker has completed startup.")

    def health(self) -> tuple[Health, str]:
        return self.state

    def server_info(self) -> Document:
        return {"version": "4.4.0", "commit": "c", "kafka_cluster_id": "k"}

    def connectors(self) -> list[str]:
        return list(self.configs)

    async def learn_types(self, names: Iterable[str]) -> None:
        pass

    def connector_info(self, name: str) -> Document:
        config = self._config(name)
        return {"name": name, "config": config, "tasks": [{"connector": name, "task": 0}], "type": "source"}

    def connector_status(self, name: str) -> Document:
        self._config(name)
        row = {"state": "RUNNING", "worker_id": "w:1", "version": "1"}
        return {"name": name, "connector": row, "tasks": [{"id": 0, **row}], "type": "source"}

    def task_configs(self, name: str) -> list[Document]:
        return [{"id": {"connector": name, "task": 0}, "config": self._config(name)}]

    def task_status(self, name: str, task: int) -> Document:
        if task:
            raise NotFound(f"No status found for task {name}-{task}")
        return self.connector_status(name)["tasks"][0]

    def connector_topics(self, name: str) -> list[str]:
        return ["t"] if name in self.configs else []

    async def reset_topics(self, name: str) -> None:
        self._note("reset_topics", name)

    async def create_connector(
        self, name: str, config: Mapping[str, str], initial_state: TargetState = TargetState.STARTED
    ) -> Document:
        self._note("create", name, initial_state)
        if name in self.configs:
            raise AlreadyExists(f"Connector {name} already exists")
        self.configs[name] = dict(config)
        return self.connector_info(name)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, Document]:
        self._note("put", name)
        is_new = name not in self.configs
        self.configs[name] = dict(config)
        return is_new, self.connector_info(name)

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> Document:
        self._note("patch", name)
        merged = {**self._config(name), **patch}
        self.configs[name] = {key: value for key, value in merged.items() if value is not None}
        return self.connector_info(name)

    async def delete_connector(self, name: str) -> None:
        self._note("delete", name)
        self._config(name)
        del self.configs[name]

    async def set_target(self, name: str, target: TargetState) -> None:
        self._note("target", name, target)
        self._config(name)
        self.targets[name] = target

    async def restart_connector(self, name: str) -> None:
        self._note("restart", name)
        self._config(name)

    async def restart_task(self, name: str, task: int) -> None:
        self._note("restart_task", name, task)
        self._config(name)

    async def restart_all(self, name: str, *, include_tasks: bool, only_failed: bool) -> Document:
        self._note("restart_all", name, include_tasks, only_failed)
        return self.connector_status(name)

    async def connector_offsets(self, name: str) -> Document:
        self._config(name)
        return {"offsets": self.offsets}

    async def alter_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> str:
        self._note("alter", name, list(offsets))
        if self.targets.get(name) is not TargetState.STOPPED:
            raise BadRequest("Connectors must be in the STOPPED state before their offsets can be modified.")
        self.offsets = [{"partition": p, "offset": o} for p, o in offsets if o is not None]
        return "The offsets for this connector have been altered successfully"

    async def reset_offsets(self, name: str) -> str:
        self._note("reset", name)
        self.offsets = []
        return "The offsets for this connector have been reset successfully"

    async def put_logger_level(self, logger: str, level: str) -> None:
        self._note("logger", logger, level)

    async def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], headers: Mapping[str, str], body: bytes
    ) -> None:
        self._note("task_configs", name, list(configs), headers.get("x-connect-authorization"), body)

    async def fence_zombies(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        self._note("fence", name)

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    def _config(self, name: str) -> dict[str, str]:
        if name not in self.configs:
            raise NotFound(f"Connector {name} not found")
        return self.configs[name]
