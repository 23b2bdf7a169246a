"""`/connectors/{connector}/tasks`, and what workers of a group ask of each other."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import body_of, config_of, empty, json_response
from connect.rest.parts import RestParts
from connect.rest.routes import Route


class Tasks:
    """Endpoints of task configs, and of requests between workers."""

    def __init__(self, parts: RestParts) -> None:
        self._service = parts.service

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        return [
            Route("/connectors/{connector}/tasks", {"GET": self._configs, "POST": self._put_configs}),
            Route("/connectors/{connector}/fence", {"PUT": self._fence}),
        ]

    async def _configs(self, request: Request) -> Response:
        return json_response(self._service.task_configs(request.path_params["connector"]))

    async def _put_configs(self, request: Request) -> Response:
        # The signature is over the body's bytes.
        body = await body_of(request)
        try:
            listed = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
            raise HTTPException(400, f"The body is not JSON: {e}") from e
        if not isinstance(listed, list):
            raise HTTPException(400, "The body must be a list of task configs")
        configs = [config_of(each, "A task config") for each in listed]
        await self._service.put_task_configs(request.path_params["connector"], configs, request.headers, body)
        return empty()

    async def _fence(self, request: Request) -> Response:
        body = await body_of(request)
        await self._service.fence_zombies(request.path_params["connector"], request.headers, body)
        return empty()
