"""RestServer: the REST interface of a worker at its listeners."""

from __future__ import annotations

import ssl
from dataclasses import replace

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from connect.config.rest import RestConfig
from connect.rest.app import Side, make_app
from connect.rest.listeners import Listener, advertised_url, client_tls, parse_listener, server_tls
from connect.rest.parts import RestParts
from kafka_client.http.server import HttpServer


class _LateApp:
    """An ASGI application that is made after its server."""

    def __init__(self) -> None:
        self.app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None, "the server has not been started"
        await self.app(scope, receive, send)


class RestServer:
    """The servers of `listeners` and `admin.listeners`: `bind`, `start`, then `close`.

    `bind` takes the ports before the worker starts, so that `url` is known. `close` is due after a failed
    `bind` too.
    """

    def __init__(self, config: RestConfig) -> None:
        self._config = config
        self._main = [parse_listener(each) for each in config.listeners]
        self._admin = [parse_listener(each) for each in config.admin_listeners or []]
        self._servers: list[tuple[HttpServer, Side]] = []
        self._client_tls: ssl.SSLContext | None = None
        self._apps: list[_LateApp] = []
        self._bound: list[Listener] = []

    @property
    def url(self) -> str:
        """The address that other workers and clients use."""
        return advertised_url(self._config, self._bound)

    @property
    def bound(self) -> list[Listener]:
        """The listeners of the REST interface, with their ports."""
        return self._bound

    @property
    def client_tls(self) -> ssl.SSLContext | None:
        """The TLS of requests to other workers; None without an `https` listener."""
        return self._client_tls

    def bind(self) -> None:
        """Take the ports. Raises MillstreamError if one is taken, ConfigError for unusable TLS settings."""
        side: Side = "all" if self._config.admin_listeners is None else "main"
        raw = self._config.raw
        if any(each.scheme == "https" for each in self._main):
            self._client_tls = client_tls(raw)
        for listener in self._main:
            server = self._bind_one(listener, side, "listeners.https.")
            self._bound.append(replace(listener, port=server.port))
        for listener in self._admin:
            self._bind_one(listener, "admin", "admin.listeners.https.")

    def _bind_one(self, listener: Listener, side: Side, prefix: str) -> HttpServer:
        tls = server_tls(self._config.raw, prefix) if listener.scheme == "https" else None
        app = _LateApp()
        server = HttpServer(app, listener.address, tls)
        server.bind()
        self._apps.append(app)
        self._servers.append((server, side))
        return server

    async def start(self, parts: RestParts) -> None:
        """Serve a worker from now on. Raises ConfigError if the REST settings cannot be used."""
        for app, (_, side) in zip(self._apps, self._servers, strict=True):
            app.app = make_app(parts, side=side, tls=self._client_tls)
        for server, _ in self._servers:
            await server.start()

    async def close(self) -> None:
        """Answer the requests received, and stop; idempotent."""
        servers, self._servers = self._servers, []
        for server, _ in servers:
            await server.close()
        for app in self._apps:
            if app.app is not None:
                app.app.state.close()
        self._apps = []
