"""`HttpView`: the HTTP server of an application's view."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from kafka_client.http.errors import EXCEPTION_HANDLERS, error_response
from kafka_client.http.health import health_endpoint
from kafka_client.http.metrics import metrics_endpoint
from kafka_client.http.server import HttpServer
from streams.errors import InvalidStateStore, UnknownStateStore
from streams.http.application import Application
from streams.http.forwarding import INSTANCE_OF, Forwarding
from streams.http.health import liveness, readiness
from streams.http.overview import Overview
from streams.http.queries import Queries
from streams.http.text import BadRequest
from streams.queries import HostInfo


class HttpView:
    """The HTTP server of an application's view: call `start`, then `close`.

    The constructor binds the port. Raises MillstreamError if it cannot.
    """

    def __init__(self, app: Application, listener: str) -> None:
        self._forwarding = Forwarding(app)
        self._server = HttpServer(_Named(_starlette(app, self._forwarding), app), listener)
        self._server.bind()

    @property
    def listens_on(self) -> HostInfo:
        """The address, with the bound port."""
        return HostInfo(self._server.host, self._server.port)

    async def start(self) -> None:
        """Begin to serve; connections made before wait until then."""
        await self._server.start()

    async def close(self) -> None:
        """Answer the requests received, and stop."""
        await self._server.close()
        self._forwarding.close()


class _Named:
    """An ASGI application whose responses name the application that the instance belongs to."""

    def __init__(self, view: Starlette, app: Application) -> None:
        self._view = view
        self._header = INSTANCE_OF.encode(), app.config.application_id.encode("latin-1", "replace")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), self._header]}
            await send(message)

        await self._view(scope, receive, send_named)


def _starlette(app: Application, forwarding: Forwarding) -> Starlette:
    overview, queries = Overview(app), Queries(app, forwarding)
    endpoints = {
        "/": overview.page,
        "/status": overview.status,
        "/tasks": overview.tasks,
        "/lag": overview.lag,
        "/restore": overview.restore,
        "/topology": overview.topology,
        "/metadata": overview.metadata,
        "/metrics": metrics_endpoint(app.registry),
        "/livez": health_endpoint(lambda: liveness(app)),
        "/readyz": health_endpoint(lambda: readiness(app)),
        "/stores": queries.stores,
        "/stores/{name}": queries.scan,
        "/stores/{name}/{key:path}": queries.key,
    }
    handlers = {
        **EXCEPTION_HANDLERS,
        BadRequest: _bad_request,
        UnknownStateStore: _not_found,
        InvalidStateStore: _not_now,
    }
    routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]
    return Starlette(routes=routes, exception_handlers=handlers)


async def _bad_request(request: Request, error: Exception) -> Response:
    return error_response(400, str(error))


async def _not_found(request: Request, error: Exception) -> Response:
    return error_response(404, str(error))


async def _not_now(request: Request, error: Exception) -> Response:
    return error_response(503, str(error))
