"""StandaloneService: the REST interface's requests to a standalone worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from connect.errors import BadRequest, NotFound
from connect.herder import TargetState
from connect.herder.herder import ConfigRecord
from connect.runtime.connector_check import CheckedConfig
from connect.runtime.service import Document, HerderService, own_version
from connect.runtime.standalone_offsets import ALTERED, RESET
from connect.runtime.worker import Worker

_ROW = ("state", "worker_id", "version", "trace")


class StandaloneService(HerderService):
    """The requests to a standalone worker, which is its own leader."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.config, worker.herder)
        self._worker = worker

    def health(self) -> tuple[Literal["starting", "healthy", "unhealthy"], str]:
        """Return the worker's health: it is healthy once it is started."""
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
        self._config(name)
        return sorted(self._worker.topics.get(name, ()))

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that the connector has used."""
        self._config(name)
        self._worker.topics.pop(name, None)

    async def connector_offsets(self, name: str) -> Document:
        """Return `{offsets: [{partition, offset}]}` (KIP-875)."""
        self._config(name)
        return {"offsets": await self._worker.offsets(name).read()}

    async def alter_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> str:
        """Change offsets of a STOPPED connector, None deletes one. Return a message (KIP-875)."""
        self._check_stopped(name)
        await self._worker.offsets(name).alter(offsets)
        return ALTERED

    async def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a STOPPED connector. Return a message (KIP-875)."""
        self._check_stopped(name)
        await self._worker.offsets(name).reset()
        return RESET

    def _check_stopped(self, name: str) -> None:
        """Raise BadRequest unless the connector is stopped and has no tasks."""
        self._config(name)
        if self._herder.config.target(name) is not TargetState.STOPPED or self._rows(name)[1]:
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be "
                "done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )

    async def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], headers: Mapping[str, str], body: bytes
    ) -> None:
        """Raise BadRequest: there is no other worker that plans."""
        raise BadRequest("a standalone worker plans its tasks itself")

    async def fence_zombies(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        """Raise BadRequest: there is no other worker whose tasks are to be fenced."""
        raise BadRequest("a standalone worker has no other workers")

    async def _check_changing(self) -> None:
        """Return at once: a standalone worker serves everything."""

    def _check(self, raw: Mapping[str, str]) -> CheckedConfig:
        return self._worker.check(raw)

    async def _write(self, records: Iterable[ConfigRecord]) -> None:
        await self._worker.write(records)

    def _rows(self, name: str) -> tuple[Document | None, Mapping[int, Document]]:
        try:
            report = self._worker.report(name)
        except NotFound:
            return None, {}
        return _row(report["connector"]), {task["id"]: _row(task) for task in report["tasks"]}


def _row(report: Mapping[str, Any]) -> Document:
    return {key: report[key] for key in _ROW if key in report}
