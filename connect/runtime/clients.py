"""Clients of a worker; connectors may have client settings of their own, such as a user (KIP-458)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from connect.runtime.client_settings import Role, client_arguments, cluster_of
from connect.runtime.worker_config import WorkerConfig
from kafka_client import Client
from kafka_client.metrics.metrics import Metrics

ROLES: Mapping[str, Role] = {"source": "producer", "sink": "consumer"}


class Clients:
    """A worker's clients by their settings; connectors with equal settings share a client.

    Clients are closed with the worker. They report to the registry `metrics`, if it is set.
    """

    def __init__(self, config: WorkerConfig, metrics: Metrics | None = None) -> None:
        self._config = config
        self._metrics = metrics
        self._clients: dict[Hashable, Client] = {}

    def worker(self, *, producing: bool) -> Client:
        """Return the client with the worker's settings; its requests may create topics if `producing`."""
        return self._get(client_arguments(self._config.raw), producing, self._config.bootstrap_servers)

    def of(self, type: str, connector: Mapping[str, Any]) -> Client:
        """Return the client for the tasks of a `source` or `sink` connector; it connects at its first use.

        Raises ConfigError for invalid settings.
        """
        return self._in_role(ROLES[type], connector, producing=type == "source")

    def admin(self, connector: Mapping[str, Any]) -> Client:
        """Return the client for a connector's group and topics (`admin.override.*`); raises as `of` does."""
        return self._in_role("admin", connector, producing=False)

    def dead_letters(self, connector: Mapping[str, Any]) -> Client:
        """Return the client for a sink's dead letters (`producer.override.*`); raises as `of` does."""
        return self._in_role("producer", connector, producing=False)

    async def close(self) -> None:
        """Close all clients."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))

    def _in_role(self, role: Role, connector: Mapping[str, Any], *, producing: bool) -> Client:
        worker = self._config
        servers = cluster_of(worker.raw, connector, role, worker.bootstrap_servers)
        return self._get(client_arguments(worker.raw, connector, role), producing, servers)

    def _get(self, arguments: dict[str, Any], producing: bool, servers: Sequence[str]) -> Client:
        settings = {"client_id": "connect", **arguments}
        key = (producing, *servers, *sorted(settings.items(), key=lambda item: item[0]))
        if key not in self._clients:
            self._clients[key] = Client(
                list(servers),
                allow_auto_topic_creation=producing,
                metrics=self._metrics,
                **settings,
            )
        return self._clients[key]
