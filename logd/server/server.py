"""All listeners of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from logd.config.listeners import advertised_endpoints, bound_endpoints
from logd.server.connection_quotas import ConnectionQuotas, spared_listener
from logd.server.exposure import warn_of_exposure
from logd.server.listener import Listener
from logd.server.receive_buffers import ReceiveBuffers

if TYPE_CHECKING:
    from logd.api.dispatch.dispatch import Serving
    from logd.broker.broker import Broker


class Server:
    """``bind`` first, ``accept`` once the broker has started, ``close`` before it stops."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        buffers = ReceiveBuffers(announced_bytes_max=broker.config.queued_max_request_bytes)
        broker.metrics.add("millstream", "receive-buffers", buffers.statistics)
        endpoints = bound_endpoints(broker.config)
        quotas = ConnectionQuotas(
            lambda: broker.config,
            spared_listener(broker.config, endpoints),
            asyncio.get_running_loop().time,
            lambda address: broker.client_quotas is None or broker.client_quotas.connected(address),
        )
        self._listeners = [Listener(broker, endpoint, buffers, quotas) for endpoint in endpoints]
        for listener in self._listeners:
            broker.metrics.add(
                "millstream", "listener", listener.statistics, listener=listener.bound.listener
            )

    def bind(self) -> None:
        """Take every listener's address and tell the broker those it goes by. CannotListen, ConfigError.

        Clients are refused until ``accept``.
        """
        for listener in self._listeners:
            listener.bind()
        bound = [listener.bound for listener in self._listeners]
        advertised = advertised_endpoints(self._broker.config, bound)
        for listener, endpoint in zip(self._listeners, advertised, strict=True):
            listener.advertised = endpoint
        self._broker.endpoints = advertised
        warn_of_exposure((listener.bound, listener.security) for listener in self._listeners)

    def accept(self) -> None:
        """Let clients in. CannotListen."""
        for listener in self._listeners:
            listener.accept()

    def intercept(self, wrap: Callable[[Serving], Serving]) -> None:
        """Have requests go to ``wrap`` of what served them so far, on all connections from now on."""
        for listener in self._listeners:
            listener.serve = wrap(listener.serve)

    def drop_connections(self) -> None:
        """Close every connection; clients may come again."""
        for listener in self._listeners:
            listener.drop_connections()

    async def close(self) -> None:
        """Close listeners and connections."""
        for listener in self._listeners:
            await listener.close()
