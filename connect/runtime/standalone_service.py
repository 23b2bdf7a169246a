"""StandaloneService: the REST interface's requests to a standalone worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from connect.errors import BadRequest, NotFound
from connect.herder.config_state import Properties
from connect.runtime.connector_offsets import not_stopped
from connect.runtime.logger_levels import LoggerLevels
from connect.runtime.service import Document, HerderService, own_version
from connect.runtime.worker import Worker
from connect.stores import OffsetStore
from connect.stores.config_records import Decision
from kafka_client import Admin

_ROW = ("state", "worker_id", "version", "trace")


class StandaloneService(HerderService):
    """The requests to a standalone worker, which is its own leader."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.config, worker.herder, worker.configs, LoggerLevels())
        self._worker = worker
        self.is_ready = True
        """False while the connectors of the command line are started."""

    def health(self) -> tuple[Literal["starting", "healthy", "unhealthy"], str]:
        """Return the worker's health: it is healthy once it has started its connectors (KIP-1017)."""
        if not self.is_ready:
            stage = self._worker.stage
            details = "" if stage is None else f" {stage.summary()}"
            return "starting", f"Worker is still starting up.{details}"
        return "healthy", "Worker has completed startup and is ready to handle requests."

    def server_info(self) -> Document:
        """Return `{version, commit, kafka_cluster_id}`."""
        return {
            "version": own_version(),
            "commit": "unknown",
            "kafka_cluster_id": self._worker.cluster_id,
        }

    async def restart_connector(self, name: str) -> None:
        """Restart the connector itself, not its tasks."""
        await self._worker.restart(name, [], connector=True)

    async def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        await self._worker.restart_task(name, task)

    async def restart_all(self, name: str, *, include_tasks: bool, only_failed: bool) -> Document:
        """Restart a connector, and its tasks if asked. Return its status, RESTARTING where so (KIP-745)."""
        plan = self._restart_plan(name, include_tasks=include_tasks, only_failed=only_failed)
        await self._worker.restart(name, plan.tasks, connector=plan.connector)
        return dict(plan.status)

    async def delete_connector(self, name: str) -> None:
        """Delete a connector; return once its tasks have stopped."""
        await self._worker.delete_connector(name)

    def connector_topics(self, name: str) -> list[str]:
        """Return the topics that the connector has used since its last reset (KIP-558)."""
        return sorted(self._worker.topics.get(name, ()))

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that the connector has used."""
        self._worker.reset_topics(name)

    async def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], headers: Mapping[str, str], body: bytes
    ) -> None:
        """Raise BadRequest: there is no other worker that plans."""
        raise BadRequest("a standalone worker plans its tasks itself")

    async def fence_zombies(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        """Raise BadRequest: there is no other worker whose tasks are to be fenced."""
        raise BadRequest("a standalone worker has no other workers")

    def _check_stopped(self, name: str) -> None:
        super()._check_stopped(name)
        if self._rows(name)[1]:
            raise not_stopped(name)  # a task that still ends would commit its own offsets over the new ones

    def _offset_store(self, config: Properties) -> OffsetStore:
        return self._worker.store

    def _admin(self, config: Properties) -> Admin:
        return self._worker.admin(config)

    async def _check_changing(self) -> None:
        """Return at once: a standalone worker serves everything."""

    async def _change(self, decide: Decision, *, of_any_worker: bool = False) -> None:
        await self._worker.write(decide())

    def _rows(self, name: str) -> tuple[Document | None, Mapping[int, Document]]:
        try:
            report = self._worker.report(name)
        except NotFound:
            return None, {}
        return _row(report["connector"]), {task["id"]: _row(task) for task in report["tasks"]}


def _row(report: Mapping[str, Any]) -> Document:
    return {key: report[key] for key in _ROW if key in report}
