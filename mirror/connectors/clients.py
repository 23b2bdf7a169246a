"""The clients of a connector or a task, one per cluster of its flow."""

from __future__ import annotations

from contextlib import AsyncExitStack

from kafka_client import Client
from mirror.config import Cluster, LinkSettings


class FlowClients:
    """Clients of both clusters of a flow. Call `open` first, `close` at the end.

    `exits` closes what is opened with the clients, before them.
    """

    source: Client
    target: Client

    def __init__(self, settings: LinkSettings, connector: str) -> None:
        self._settings = settings
        self._client_id = f"{settings.name}|{connector}"
        self.exits = AsyncExitStack()

    async def open(self) -> None:
        """Connect. Raises MillstreamError if a cluster cannot be reached."""
        try:
            self.source = await self.exits.enter_async_context(self._client(self._settings.source))
            self.target = await self.exits.enter_async_context(self._client(self._settings.target))
        except BaseException:
            await self.exits.aclose()
            raise

    @property
    def of_syncs(self) -> Client:
        """The client of the cluster that has the offset-syncs topic."""
        return self.source if self._settings.offset_syncs_location == "source" else self.target

    async def close(self) -> None:
        """Close everything; a second call does nothing."""
        await self.exits.aclose()

    def _client(self, cluster: Cluster) -> Client:
        return Client(cluster.bootstrap_servers, **{"client_id": self._client_id, **cluster.client})
