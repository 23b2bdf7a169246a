"""Clients for connectors that bring settings of their own: another user, another certificate (KIP-458)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import Any

from connect.runtime.client_settings import Role, client_arguments
from connect.runtime.worker_config import WorkerConfig
from kafka_client import Client
from kafka_client.metrics.metrics import Metrics

ROLES: Mapping[str, Role] = {"source": "producer", "sink": "consumer"}


class Clients:
    """A worker's clients by their settings: connectors with equal ones share theirs, to the worker's end.

    All of them tell of themselves in `metrics`, if that is given.
    """

    def __init__(self, config: WorkerConfig, metrics: Metrics | None = None) -> None:
        self._config = config
        self._metrics = metrics
        self._clients: dict[Hashable, Client] = {}

    def worker(self, *, producing: bool) -> Client:
        """The client of those without settings of their own; brokers may create topics if `producing`."""
        return self._get(client_arguments(self._config.raw), producing)

    def of(self, type: str, connector: Mapping[str, Any]) -> Client:
        """The client for the tasks of a `source` or `sink` connector; it connects when it is used.

        ConfigError for settings that cannot be used.
        """
        arguments = client_arguments(self._config.raw, connector, ROLES[type])
        return self._get(arguments, producing=type == "source")

    async def close(self) -> None:
        """Close all."""
        await asyncio.gather(*(client.close() for client in self._clients.values()))

    def _get(self, arguments: dict[str, Any], producing: bool) -> Client:
        given = {"client_id": "connect", **arguments}
        key = (producing, *sorted(given.items(), key=lambda item: item[0]))
        if key not in self._clients:
            self._clients[key] = Client(
                self._config.bootstrap_servers,
                allow_auto_topic_creation=producing,
                metrics=self._metrics,
                **given,
            )
        return self._clients[key]
