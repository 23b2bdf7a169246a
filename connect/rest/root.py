"""`/`, `/health`, `/livez`, `/readyz`, `/metrics` and `/openapi.json`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import json_response
from connect.rest.openapi import document
from connect.rest.parts import RestParts
from connect.rest.routes import Route
from kafka_client.http.health import health_endpoint, no_problem
from kafka_client.http.metrics import metrics_endpoint

_STATUS = {"healthy": 200, "starting": 503, "unhealthy": 500}


class Root:
    """Endpoints of the worker itself."""

    def __init__(self, parts: RestParts) -> None:
        self._parts = parts

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        routes = [
            Route("/", {"GET": self._info}),
            Route("/health", {"GET": self._health}),
            Route("/livez", {"GET": health_endpoint(no_problem)}),
            Route("/readyz", {"GET": health_endpoint(self._readiness)}),
            Route("/openapi.json", {"GET": self._openapi}),
        ]
        if self._parts.registry is not None:
            routes.append(Route("/metrics", {"GET": metrics_endpoint(self._parts.registry)}))
        return routes

    async def _info(self, request: Request) -> Response:
        return json_response(self._parts.service.server_info())

    async def _health(self, request: Request) -> Response:
        health, message = self._parts.service.health()
        return json_response({"status": health, "message": message}, _STATUS[health])

    def _readiness(self) -> str | None:
        """Return why the worker does not handle requests now, or None if it does."""
        health, message = self._parts.service.health()
        return None if health == "healthy" else message

    async def _openapi(self, request: Request) -> Response:
        return json_response(document())
