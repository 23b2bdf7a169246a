"""The HTTP listener of a daemon that has no other view: ``/metrics``, ``/livez`` and ``/readyz``."""

from __future__ import annotations

import logging
from typing import Self

from starlette.applications import Starlette
from starlette.routing import Route

from kafka_client.http.errors import EXCEPTION_HANDLERS
from kafka_client.http.health import Check, health_endpoint, no_problem
from kafka_client.http.metrics import metrics_endpoint
from kafka_client.http.server import HttpServer
from kafka_client.metrics.metrics import Metrics

_log = logging.getLogger(__name__)


class OperationsServer:
    """The server of a daemon's metrics and health: `async with OperationsServer(...)`.

    ``ready`` returns why the daemon does not serve its clients, or None if it does.
    """

    def __init__(self, listener: str, metrics: Metrics, *, ready: Check) -> None:
        endpoints = {
            "/metrics": metrics_endpoint(metrics),
            "/livez": health_endpoint(no_problem),
            "/readyz": health_endpoint(ready),
        }
        routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]
        app = Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS)
        self._server = HttpServer(app, listener)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    async def __aenter__(self) -> Self:
        """Start to serve. Raises MillstreamError if the address cannot be bound."""
        await self._server.start()
        _log.info("metrics and health at http://%s", self._server.address)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Answer the requests received, and stop."""
        await self._server.close()
