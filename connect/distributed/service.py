"""DistributedService: the REST interface's requests to a worker of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from connect.distributed.signatures import verify
from connect.distributed.worker import DistributedWorker
from connect.errors import BadRequest, NotFound, NotLeader, Rebalancing
from connect.group import Unit
from connect.group.units import CONNECTOR
from connect.herder import RestartRequest, TargetState
from connect.herder.config_state import Properties
from connect.runtime.service import Document, HerderService, own_version
from connect.runtime.stage import request_stage
from connect.stores import ConfigRecord, OffsetStore, StoredStatus
from connect.stores.config_records import LOGGER, RESTART, Decision
from kafka_client import Admin

_STABLE_SECONDS = 20.0
"""How long a change waits for the end of a rebalance before it is answered 409."""


class DistributedService(HerderService):
    """The requests to a worker of a group; the leader makes the changes."""

    def __init__(self, worker: DistributedWorker) -> None:
        super().__init__(worker.config, worker.herder, worker.configs, worker.loggers)
        self._worker = worker

    def health(self) -> tuple[Literal["starting", "healthy", "unhealthy"], str]:
        """Return the worker's health: healthy while it is in its group, and the coordinator answers."""
        if self._worker.failure is not None:
            return "unhealthy", f"The worker is no longer in its group: {self._worker.failure}"
        group = self._worker.group
        if group.generation >= 0 and not group.is_current:
            return "unhealthy", (
                "Worker was unable to handle this request and may be unable to handle other requests: the "
                "group's coordinator is silent for longer than session.timeout.ms"
            )
        if (problem := self._worker.lost_configs.problem()) is not None:
            return "unhealthy", problem
        if group.assignment is None:
            return "starting", "Worker is still starting up: it joins its group."
        return "healthy", "Worker has completed startup and is ready to handle requests."

    def server_info(self) -> Document:
        """Return `{version, commit, kafka_cluster_id}`."""
        return {"version": own_version(), "commit": "unknown", "kafka_cluster_id": self._worker.cluster_id}

    async def restart_connector(self, name: str) -> None:
        """Restart the connector itself, on the worker that has it."""
        self._config(name)
        await self._check_owning(Unit(name))
        self._worker.restart(name, [], connector=True)

    async def restart_task(self, name: str, task: int) -> None:
        """Restart one task, on the worker that has it."""
        self._config(name)
        if not 0 <= task < len(self._tasks(name)):
            raise NotFound(f"Unknown task: {name}-{task}")
        await self._check_owning(Unit(name, task))
        self._worker.restart(name, [task], connector=False)

    async def restart_all(self, name: str, *, include_tasks: bool, only_failed: bool) -> Document:
        """Have all workers restart their parts of a connector. Return its status, RESTARTING where so."""
        await self._check_changing()
        self._config(name)
        plan = self._restart_plan(name, include_tasks=include_tasks, only_failed=only_failed)
        request_stage().enter(f"writing restart request for connector {name} to the config topic")
        request = RestartRequest(name, only_failed=only_failed, include_tasks=include_tasks)
        await self._change(lambda: [(RESTART + name, request.value())])
        return dict(plan.status)

    async def set_target(self, name: str, target: TargetState) -> None:
        """Start, pause or stop a connector; a stop is the leader's, since it removes the tasks."""
        if target is TargetState.STOPPED:
            await self._check_changing()
        await super().set_target(name, target)

    def connector_topics(self, name: str) -> list[str]:
        """Return the topics that the connector has used since its last reset (KIP-558)."""
        return sorted(use.topic for use in self._worker.statuses.topics(name))

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that the connector has used."""
        for use in self._worker.statuses.topics(name):
            self._worker.statuses.delete_topic(name, use.topic)

    async def put_logger_level(self, logger: str, level: str) -> None:
        """Set a logger's level on every worker of the group (KIP-976)."""
        self.loggers.set(logger, level)
        await self._change(lambda: [(LOGGER + logger, {"level": level.upper()})], of_any_worker=True)

    async def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], headers: Mapping[str, str], body: bytes
    ) -> None:
        """Take the task configs that another worker planned; `headers` carry its signature (KIP-507)."""
        self._check_signed(headers, body)
        self._check_leader()
        self._config(name)
        count = len(configs)
        request_stage().enter(f"writing {count} task configs for connector {name} to the config topic")
        await self._change(lambda: self._herder.put_plan(name, configs))

    async def fence_zombies(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        """Fence the older tasks of a source, for a worker that starts a newer one (KIP-618)."""
        self._check_signed(headers, body)
        self._check_leader()
        if await self._learned_type(self._config(name)) == "sink":
            raise BadRequest(f"Connector {name} is not a source connector")
        if not self._worker.config.exactly_once_source_enabled:
            raise BadRequest(
                "this worker does not support exactly-once sources (exactly.once.source.support)"
            )
        await self._worker.fence_zombies(name)

    async def _stopped(self, name: str) -> Properties:
        """Return the config of a STOPPED connector; no task of it that is still alive can write any more."""
        config = await super()._stopped(name)
        is_exactly_once = self._worker.config.exactly_once_source_enabled
        if is_exactly_once and await self._learned_type(config) == "source":
            await self._worker.fence_zombies(name)
            self._check_stopped(name)
        return config

    async def _check_changing(self) -> None:
        """Return if this worker may make changes now, after a rebalance if one is under way."""
        request_stage().enter("ensuring membership in the cluster")
        try:
            async with asyncio.timeout(_STABLE_SECONDS):
                await self._worker.group.stable()
        except TimeoutError:
            raise Rebalancing(
                "Cannot complete request momentarily due to a rebalance of the group that takes long"
            ) from None
        self._check_leader()

    def _check_leader(self) -> None:
        leader_url = self._worker.leader_url()
        if leader_url is not None:
            raise NotLeader("Only the leader can make this change", leader_url)

    async def _check_owning(self, unit: Unit) -> None:
        """Return if a unit is this worker's; otherwise raise NotLeader with the address of who knows more."""
        request_stage().enter("ensuring membership in the cluster")
        try:
            async with asyncio.timeout(_STABLE_SECONDS):
                await self._worker.group.stable()
        except TimeoutError:
            raise Rebalancing("Cannot complete request momentarily due to a rebalance") from None
        if self._worker.has(unit):
            return
        self._check_leader()
        owner_url = self._worker.group.owner_url(unit)
        what = "Connector" if unit.task == CONNECTOR else f"Task {unit.task} of connector"
        if owner_url is None:
            raise Rebalancing(f"{what} {unit.connector} is not assigned to any worker now")
        raise NotLeader(f"{what} {unit.connector} runs on another worker", owner_url)

    def _offset_store(self, config: Properties) -> OffsetStore:
        return self._worker.offsets.of(config.get("offsets.storage.topic"))

    def _admin(self, config: Properties) -> Admin:
        return self._worker.admin(config)

    def _check_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        if self._worker.group.is_signed:
            key = self._herder.config.session_key
            verify(key, self._worker.config.inter_worker_verification_algorithms, headers, body)

    async def _change(self, decide: Decision, *, of_any_worker: bool = False) -> None:
        def decide_as_leader() -> Iterable[ConfigRecord]:
            self._check_leader()  # once more: other changes came first
            return decide()

        await self._worker.change(decide if of_any_worker else decide_as_leader)

    def _rows(self, name: str) -> tuple[Document | None, Mapping[int, Document]]:
        statuses = self._worker.statuses
        connector = statuses.get(name)
        if connector is None or name not in self._herder.config.connectors:
            return None, {}
        return _row(connector), {task: _row(status) for task, status in statuses.tasks(name).items()}


def _row(status: StoredStatus) -> Document:
    row: dict[str, Any] = {"state": status.state, "worker_id": status.worker_id}
    if status.version is not None:
        row["version"] = status.version
    return row if status.trace is None else {**row, "trace": status.trace}
