"""The connectors that look for work in the source: they connect, look, and look again from time to time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from connect.api import SourceConnector
from mirror.config import LinkSettings
from mirror.connectors.clients import FlowClients
from mirror.connectors.refresh import Refresh
from mirror.connectors.settings import MirrorConfig, flow_of


class FlowConnector(SourceConnector):
    """A connector of one flow. A subclass has a CONFIG of its own and the three methods below."""

    CONFIG: ClassVar[type[MirrorConfig]] = MirrorConfig
    VERSION = "1"
    settings: LinkSettings
    clients: FlowClients

    @abstractmethod
    async def begin(self) -> None:
        """Create the internal topics, and look for work. Raises MillstreamError if a cluster fails."""

    @abstractmethod
    async def look(self) -> None:
        """Look for work again; have tasks planned again if it has changed. Raises MillstreamError."""

    @property
    @abstractmethod
    def look_seconds(self) -> float | None:
        """The time between two looks, None for no further one."""

    async def start(self, config: Mapping[str, str]) -> None:
        """Connect and `begin`, unless the connector is not enabled. Raises MillstreamError."""
        self.config = dict(config)
        self._refresh: Refresh | None = None
        self._is_open = False
        parsed = self.CONFIG.parse(config)
        parsed.warn_without_effect(self.context.connector)
        if not parsed.enabled:
            return
        self.settings = flow_of(config, self.CONFIG)
        self.clients = FlowClients(self.settings, self.context.connector)
        await self.clients.open()
        self._is_open = True
        try:
            await self.begin()
        except BaseException:
            await self.clients.close()
            raise
        if self.look_seconds is not None:
            self._refresh = Refresh(self.context.connector, self.look_seconds, self.look)
            self._refresh.start()

    async def stop(self) -> None:
        """Disconnect."""
        if self._refresh is not None:
            await self._refresh.stop()
        if self._is_open:
            await self.clients.close()
