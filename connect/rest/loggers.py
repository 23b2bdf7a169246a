"""`/admin/loggers`: levels of Python's loggers by Kafka's names (KIP-495, KIP-976)."""

from __future__ import annotations

import logging

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import empty, json_body, json_response, object_of
from connect.rest.parts import RestParts
from connect.rest.routes import Route
from kafka_client.logs.levels import LEVELS

_log = logging.getLogger(__name__)


class Loggers:
    """Endpoints of loggers."""

    def __init__(self, parts: RestParts) -> None:
        self._service = parts.service
        self._levels = parts.service.loggers

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        return [
            Route("/admin/loggers", {"GET": self._list}),
            Route("/admin/loggers/{logger}", {"GET": self._get, "PUT": self._put}),
        ]

    async def _list(self, request: Request) -> Response:
        return json_response(self._levels.all())

    async def _get(self, request: Request) -> Response:
        name = request.path_params["logger"]
        level = self._levels.one(name)
        if level is None:
            raise HTTPException(404, f"Logger {name} not found.")
        return json_response(level)

    async def _put(self, request: Request) -> Response:
        name, scope = request.path_params["logger"], request.query_params.get("scope", "worker").lower()
        level = object_of(await json_body(request)).get("level")
        if level is None:
            raise HTTPException(400, "Desired 'level' parameter was not specified in request.")
        if not isinstance(level, str) or level.upper() not in LEVELS:
            raise HTTPException(404, f"invalid log level '{level}'.")
        if scope == "cluster":
            await self._service.put_logger_level(name, level.upper())
            return empty()
        if scope != "worker":
            _log.warning("the scope %r of a logger's level is not known: it is set on this worker", scope)
        return json_response(self._levels.set(name, level.upper()))
