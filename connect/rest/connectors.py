"""`/connectors`: which connectors there are, their configs and tasks."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.errors import NotFound
from connect.herder import TargetState
from connect.rest.bodies import config_of, empty, json_body, json_response, object_of, patch_of
from connect.rest.parts import RestParts, location, named
from connect.rest.routes import Route

_FIELDS = {"name", "config", "initial_state"}
_INITIAL = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}


class Connectors:
    """Endpoints of connectors and their configs."""

    def __init__(self, parts: RestParts) -> None:
        self._parts = parts
        self._service = parts.service

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        one = "/connectors/{connector}"
        config = {"GET": self._config, "PUT": self._put, "PATCH": self._patch}
        return [
            Route("/connectors", {"GET": self._list, "POST": self._create}),
            Route(one, {"GET": self._info, "DELETE": self._delete}),
            Route(f"{one}/config", config),
            Route(f"{one}/topics", {"GET": self._topics}),
            Route(f"{one}/topics/reset", {"PUT": self._reset_topics}),
        ]

    async def _list(self, request: Request) -> Response:
        expanded = request.query_params.getlist("expand")
        names = self._service.connectors()
        if not expanded:
            return json_response(names)
        await self._service.learn_types(names)
        documents = {name: self._expanded(name, expanded) for name in names}
        return json_response({name: each for name, each in documents.items() if each is not None})

    def _expanded(self, name: str, expand: list[str]) -> dict[str, Any] | None:
        """Return a connector's documents, or None if it has been deleted meanwhile."""
        try:
            documents = {}
            if "status" in expand:
                documents["status"] = self._service.connector_status(name)
            if "info" in expand:
                documents["info"] = self._service.connector_info(name)
        except NotFound:
            return None
        return documents

    async def _create(self, request: Request) -> Response:
        document = object_of(await json_body(request))
        unknown = sorted(document.keys() - _FIELDS)
        if unknown:
            raise HTTPException(400, f"Unknown field {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}")
        name = document.get("name")
        if name is not None and not isinstance(name, str):
            raise HTTPException(400, "The field name must be a text")
        if document.get("config") is None:
            raise HTTPException(400, "The field config is missing: an object with the connector's settings")
        config = named((name or "").strip(), config_of(document["config"], "The field config"))
        initial = _initial_state(document.get("initial_state"))
        await self._parts.check(request, config)
        info = await self._service.create_connector(config["name"], config, initial)
        return json_response(info, 201, location(request, config["name"]))

    async def _info(self, request: Request) -> Response:
        await self._service.learn_types([_name(request)])
        return json_response(self._service.connector_info(_name(request)))

    async def _config(self, request: Request) -> Response:
        return json_response(self._service.connector_info(_name(request))["config"])

    async def _put(self, request: Request) -> Response:
        name = _name(request)
        config = named(name, config_of(await json_body(request)))
        await self._parts.check(request, config)
        is_new, info = await self._service.put_config(name, config)
        return json_response(info, 201 if is_new else 200, location(request, name) if is_new else None)

    async def _patch(self, request: Request) -> Response:
        name = _name(request)
        patch = patch_of(await json_body(request))
        merged = {**self._service.connector_info(name)["config"], **patch}
        config = named(name, {key: value for key, value in merged.items() if value is not None})
        await self._parts.check(request, config)
        return json_response(await self._service.patch_config(name, patch))

    async def _delete(self, request: Request) -> Response:
        await self._service.delete_connector(_name(request))
        return empty()

    async def _topics(self, request: Request) -> Response:
        if not self._parts.config.topic_tracking_enable:
            raise HTTPException(403, "Topic tracking is disabled.")
        name = _name(request)
        return json_response({name: {"topics": self._service.connector_topics(name)}})

    async def _reset_topics(self, request: Request) -> Response:
        config = self._parts.config
        if not config.topic_tracking_enable:
            raise HTTPException(403, "Topic tracking is disabled.")
        if not config.topic_tracking_allow_reset:
            raise HTTPException(403, "Topic tracking reset is disabled.")
        await self._service.reset_topics(_name(request))
        return empty(202)


def _name(request: Request) -> str:
    return str(request.path_params["connector"])


def _initial_state(value: object) -> TargetState:
    """Return the target state that `initial_state` asks for (KIP-980)."""
    if value is None:
        return TargetState.STARTED
    state = _INITIAL.get(value.upper()) if isinstance(value, str) else None
    if state is None:
        raise HTTPException(400, f"initial_state {value!r} must be one of {', '.join(_INITIAL)}")
    return state
