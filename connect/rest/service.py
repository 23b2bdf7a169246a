"""WorkerService: what the REST interface asks of a worker, standalone or in a group.

Documents have the shapes of Kafka Connect's REST interface. Any method may raise

    NotFound         no such connector or task                          404
    AlreadyExists    a connector of this name exists                    409
    BadRequest       the request makes no sense in the present state    400
    ConfigError      a config is not valid                              400
    Rebalancing      the group rebalances, or this worker does not know the newest configs yet    409
    NotLeader        only the leader serves this request: it is forwarded to `leader_url`
    TimeoutError     the request was not done in time                   500, with the stage
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from connect.herder import TargetState
from connect.runtime.logger_levels import LoggerLevels

Document: TypeAlias = dict[str, Any]
"""A JSON object."""
Health: TypeAlias = Literal["starting", "healthy", "unhealthy"]


class WorkerService(Protocol):
    """The requests to a worker."""

    loggers: LoggerLevels
    """The levels of the worker's loggers."""

    def health(self) -> tuple[Health, str]:
        """Return the worker's health, with a sentence that explains it (KIP-1017)."""
        ...

    def server_info(self) -> Document:
        """Return `{version, commit, kafka_cluster_id}`."""
        ...

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        ...

    async def learn_types(self, names: Iterable[str]) -> None:
        """Have the types of connectors in the documents about them; it is called first."""
        ...

    def connector_info(self, name: str) -> Document:
        """Return `{name, config, tasks: [{connector, task}], type}`."""
        ...

    def connector_status(self, name: str) -> Document:
        """Return `{name, connector: {state, worker_id, version, trace?}, tasks: [{id, ...}], type}`."""
        ...

    def task_configs(self, name: str) -> list[Document]:
        """Return `[{id: {connector, task}, config}]`."""
        ...

    def task_status(self, name: str, task: int) -> Document:
        """Return `{id, state, worker_id, version, trace?}`."""
        ...

    def connector_topics(self, name: str) -> list[str]:
        """Return the topics that the connector has used since its last reset (KIP-558).

        As in Kafka, a connector that does not exist has none.
        """
        ...

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that the connector has used."""
        ...

    async def create_connector(
        self, name: str, config: Mapping[str, str], initial_state: TargetState = TargetState.STARTED
    ) -> Document:
        """Create a connector and return its info. Raises AlreadyExists if there is one."""
        ...

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, Document]:
        """Create a connector or replace its config. Return True if it is new, and its info."""
        ...

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> Document:
        """Change some keys of a config, None deletes a key, and return the connector's info (KIP-477)."""
        ...

    async def delete_connector(self, name: str) -> None:
        """Delete a connector."""
        ...

    async def set_target(self, name: str, target: TargetState) -> None:
        """Start, pause or stop a connector."""
        ...

    async def restart_connector(self, name: str) -> None:
        """Restart the connector itself, not its tasks."""
        ...

    async def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        ...

    async def restart_all(self, name: str, *, include_tasks: bool, only_failed: bool) -> Document:
        """Restart a connector, and its tasks if asked. Return its status, RESTARTING where so (KIP-745)."""
        ...

    async def connector_offsets(self, name: str) -> Document:
        """Return `{offsets: [{partition, offset}]}` (KIP-875)."""
        ...

    async def alter_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]
    ) -> str:
        """Change offsets of a STOPPED connector, None deletes one. Return a message (KIP-875)."""
        ...

    async def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a STOPPED connector. Return a message (KIP-875)."""
        ...

    async def put_logger_level(self, logger: str, level: str) -> None:
        """Set a logger's level on every worker of the group (KIP-976)."""
        ...

    async def put_task_configs(
        self, name: str, configs: Sequence[Mapping[str, str]], headers: Mapping[str, str], body: bytes
    ) -> None:
        """Take the task configs that another worker planned; `headers` carry its signature (KIP-507)."""
        ...

    async def fence_zombies(self, name: str, headers: Mapping[str, str], body: bytes) -> None:
        """Fence the producers of a source's former tasks, for another worker (KIP-618)."""
        ...
