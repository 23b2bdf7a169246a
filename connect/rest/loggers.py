"""`/admin/loggers`: levels of Python's loggers by Kafka's names (KIP-495, KIP-976)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import empty, json_body, json_response, object_of
from connect.rest.parts import RestParts
from connect.rest.routes import Route
from kafka_client.logs.levels import LEVELS, ROOT, logger_named, name_of

_log = logging.getLogger(__name__)


class LoggerLevels:
    """The levels of this process's loggers, and when each was changed by `set`."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._modified: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the loggers that have a level of their own, and the root."""
        levels = {name: self._shown(name) for name, logger in sorted(_loggers().items()) if logger.level}
        return {**levels, ROOT: self._shown(ROOT)}

    def one(self, name: str) -> dict[str, Any] | None:
        """Return a logger's level, which it may have from its parent; None if there is no such logger."""
        return self._shown(name) if name == ROOT or name in _loggers() else None

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and all below it. Return the names of those whose level changed."""
        number = LEVELS[level]
        below = "" if name == ROOT else f"{name}."
        loggers = {each: logger for each, logger in _loggers().items() if each.startswith(below)}
        loggers[name] = logger_named(name)
        changed = sorted(each for each, logger in loggers.items() if logger.getEffectiveLevel() != number)
        for each, logger in loggers.items():
            logger.setLevel(number if each == name else logging.NOTSET)
        self._modified.update(dict.fromkeys([*changed, name], int(self._clock() * 1000)))
        return changed

    def _shown(self, name: str) -> dict[str, Any]:
        level = name_of(logger_named(name).getEffectiveLevel())
        return {"level": level, "last_modified": self._modified.get(name)}


def _loggers() -> dict[str, logging.Logger]:
    listed = dict(logging.getLogger().manager.loggerDict)
    return {name: logger for name, logger in listed.items() if isinstance(logger, logging.Logger)}


class Loggers:
    """Endpoints of loggers."""

    def __init__(self, parts: RestParts, levels: LoggerLevels | None = None) -> None:
        self._service = parts.service
        self._levels = levels or LoggerLevels()

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
