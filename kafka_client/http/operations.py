"""The HTTP listener of a daemon without another view: ``/metrics``, ``/livez``, ``/readyz`` and its facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kafka_client.http.access import HttpAccess
from kafka_client.http.address import is_loopback
from kafka_client.http.errors import EXCEPTION_HANDLERS
from kafka_client.http.health import Check, health_endpoint, no_problem
from kafka_client.http.metrics import metrics_endpoint
from kafka_client.http.server import HttpServer
from kafka_client.http.users_only import UsersOnly
from kafka_client.metrics.metrics import Metrics

_log = logging.getLogger(__name__)


class OperationsServer:
    """The server of a daemon's metrics and health: `async with OperationsServer(...)`.

    ``ready`` returns why the daemon does not serve its clients, or None if it does. ``facts`` has what else
    is served, by path: functions that return JSON's values and do not block. ``access`` has the TLS and the
    users.
    """

    look_seconds = 5.0
    """The time between two looks at the files of certificates and users."""

    def __init__(
        self,
        listener: str,
        metrics: Metrics,
        *,
        ready: Check,
        facts: Mapping[str, Callable[[], Any]] | None = None,
        access: HttpAccess | None = None,
    ) -> None:
        endpoints = {
            "/metrics": metrics_endpoint(metrics),
            "/livez": health_endpoint(no_problem),
            "/readyz": health_endpoint(ready),
            **{path: _facts_endpoint(read) for path, read in (facts or {}).items()},
        }
        routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]
        app = Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS)
        self._access = HttpAccess() if access is None else access
        self._server = HttpServer(UsersOnly(app, self._access), listener, self._access.tls)
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.port

    async def __aenter__(self) -> Self:
        """Start to serve. Raises MillstreamError if the address cannot be bound."""
        await self._server.start()
        _log.info("metrics and health at %s://%s", self._access.scheme, self._server.address)
        if self._access.is_open and not is_loopback(self._server.host):
            _log.warning(
                "HTTP listener %s: no authentication, so anyone who reaches it may read metrics. Listen on a "
                "loopback address, or name users (basic.auth.users.file) or ask for certificates "
                "(ssl.client.auth=required)",
                self._server.address,
            )
        if self._access.changes:
            self._refreshing = asyncio.create_task(self._refresh(), name="http-access")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Answer the requests received, and stop."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        await self._server.close()

    async def _refresh(self) -> None:
        """Look for changed certificates and users periodically."""
        while True:
            await asyncio.sleep(self.look_seconds)
            await asyncio.to_thread(self._access.refresh)


def _facts_endpoint(read: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return JSONResponse(read())

    return endpoint
