"""States of connectors and tasks: status, pause, resume, stop and restart."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from connect.herder import TargetState
from connect.rest.bodies import empty, flag, json_response
from connect.rest.parts import RestParts
from connect.rest.routes import Endpoint, Route


class States:
    """Endpoints of connectors' and tasks' states."""

    def __init__(self, parts: RestParts) -> None:
        self._service = parts.service

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        one = "/connectors/{connector}"
        return [
            Route(f"{one}/status", {"GET": self._status}),
            Route(f"{one}/restart", {"POST": self._restart}),
            Route(f"{one}/pause", {"PUT": self._target(TargetState.PAUSED, 202)}),
            Route(f"{one}/resume", {"PUT": self._target(TargetState.STARTED, 202)}),
            Route(f"{one}/stop", {"PUT": self._target(TargetState.STOPPED, 204)}),
            Route(f"{one}/tasks/{{task}}/status", {"GET": self._task_status}),
            Route(f"{one}/tasks/{{task}}/restart", {"POST": self._restart_task}),
        ]

    async def _status(self, request: Request) -> Response:
        await self._service.learn_types([_name(request)])
        return json_response(self._service.connector_status(_name(request)))

    async def _task_status(self, request: Request) -> Response:
        return json_response(self._service.task_status(_name(request), _task(request)))

    async def _restart(self, request: Request) -> Response:
        name = _name(request)
        include_tasks, only_failed = flag(request, "includeTasks", False), flag(request, "onlyFailed", False)
        if not include_tasks and not only_failed:
            await self._service.restart_connector(name)
            return empty()
        await self._service.learn_types([name])
        status = await self._service.restart_all(name, include_tasks=include_tasks, only_failed=only_failed)
        return json_response(status, 202)

    async def _restart_task(self, request: Request) -> Response:
        await self._service.restart_task(_name(request), _task(request))
        return empty()

    def _target(self, target: TargetState, status: int) -> Endpoint:
        """Return the endpoint that sets a connector's target state."""

        async def endpoint(request: Request) -> Response:
            await self._service.set_target(_name(request), target)
            return empty(status)

        return endpoint


def _name(request: Request) -> str:
    return str(request.path_params["connector"])


def _task(request: Request) -> int:
    return int(request.path_params["task"])
