"""`make_app`: the REST interface of a worker as an ASGI application, with Kafka Connect's answers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Literal

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from connect.config.rest import RestConfig
from connect.errors import NotLeader
from connect.rest.basic_auth import BasicAuth
from connect.rest.connectors import Connectors
from connect.rest.failures import answer_failure
from connect.rest.forwarding import Forwarding
from connect.rest.loggers import Loggers
from connect.rest.offsets import Offsets
from connect.rest.parts import RestParts
from connect.rest.plugins import Plugins
from connect.rest.response_headers import HeaderRule, parse_rules
from connect.rest.root import Root
from connect.rest.routes import Route, Routes
from connect.rest.states import States
from connect.rest.tasks import Tasks
from connect.runtime.stage import begin_request

_log = logging.getLogger(__name__)
Side = Literal["all", "main", "admin"]
"""Which paths an application has: all, all but `/admin`, or `/admin` alone."""
_CORS_METHODS = "GET,POST,HEAD"
_OTHER_TYPES = ("/metrics",)
"""Paths whose answers are not JSON."""


def make_app(parts: RestParts, *, side: Side = "all", tls: ssl.SSLContext | None = None) -> Starlette:
    """Return the application. `tls` is for forwarding to a leader with an `https` address.

    Raises ConfigError if the REST settings cannot be used.
    """
    answering = Answering(parts, routes_of(parts, side), tls)
    config = parts.config
    middleware = []
    if config.access_control_allow_origin:
        origins = [each.strip() for each in config.access_control_allow_origin.split(",")]
        methods = config.access_control_allow_methods or _CORS_METHODS
        allowed = [each.strip() for each in methods.split(",")]
        cors = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=allowed)
        middleware.append(cors)
    app = Starlette(middleware=middleware)
    # A route of Starlette's, a mounted one too, matches no path with a line break.
    app.router.default = answering
    app.state.close = answering.close
    return app


def routes_of(parts: RestParts, side: Side = "all") -> list[Route]:
    """Return the routes of an application."""
    main = [
        *Root(parts).routes(),
        *Connectors(parts).routes(),
        *States(parts).routes(),
        *Tasks(parts).routes(),
        *Offsets(parts).routes(),
        *Plugins(parts).routes(),
    ]
    admin = Loggers(parts).routes()
    return {"all": [*main, *admin], "main": main, "admin": admin}[side]


class Answering:
    """The answer to every request: user, routes, time limit, forwarding, failures and headers."""

    def __init__(self, parts: RestParts, routes: list[Route], tls: ssl.SSLContext | None) -> None:
        config: RestConfig = parts.config
        self._routes = Routes(routes)
        self._seconds = config.rest_request_timeout_ms / 1000
        self._forwarding = Forwarding(self._seconds, tls)
        self._rules: list[HeaderRule] = parse_rules(config.response_http_headers_config)
        self._auth: BasicAuth | None = None
        if config.rest_extension_classes and config.java_security_auth_login_config:
            self._auth = BasicAuth.configured(config.java_security_auth_login_config)
        self.close: Callable[[], None] = self._forwarding.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as an ASGI application."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        stage = begin_request()
        try:
            async with asyncio.timeout(self._seconds) as limit:
                response = await self._answered(request)
        except Exception as e:
            failure = e
            if isinstance(e, TimeoutError) and limit.expired():
                failure = TimeoutError(stage.present.summary())
            response = await answer_failure(request, failure)
        for rule in self._rules:
            rule.apply(response)
        return response

    async def _answered(self, request: Request) -> Response:
        path = request.url.path
        if self._auth is not None:
            self._auth.check(request, path)
        if path not in _OTHER_TYPES and not _accepts_json(request.headers.get("accept", "")):
            raise HTTPException(406, "HTTP 406 Not Acceptable")
        try:
            return await self._routes(request)
        except NotLeader as e:
            return await self._forwarding.forward(request, e)


def _accepts_json(accept: str) -> bool:
    """Return True if JSON is among the types that a client accepts."""
    kinds = {each.partition(";")[0].strip().lower() for each in accept.split(",")}
    return not accept.strip() or bool(kinds & {"*/*", "application/*", "application/json"})
