"""The HTTP listener of a daemon without another view: ``/metrics``, ``/livez``, ``/readyz`` and its facts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kafka_client.http.errors import EXCEPTION_HANDLERS
from kafka_client.http.health import Check, health_endpoint, no_problem
from kafka_client.http.metrics import metrics_endpoint
from kafka_client.http.server import HttpServer
from kafka_client.metrics.metrics import Metrics

_log = logging.getLogger(__name__)


class OperationsServer:
    """The server of a daemon's metrics and health: `async with OperationsServer(...)`.

    ``ready`` returns why the daemon does not serve its clients, or None if it does. ``facts`` has what else
    is served, by path: functions that return JSON's values and do not block.
    """

    def __init__(
        self,
        listener: str,
        metrics: Metrics,
        *,
        ready: Check,
        facts: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        endpoints = {
            "/metrics": metrics_endpoint(metrics),
            "/livez": health_endpoint(no_problem),
            "/readyz": health_endpoint(ready),
            **{path: _facts_endpoint(read) for path, read in (facts or {}).items()},
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


def _facts_endpoint(read: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return JSONResponse(read())

    return endpoint
