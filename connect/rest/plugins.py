"""`/connector-plugins`: which plugins there are, their settings, and the check of a config."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from connect.errors import BadRequest
from connect.rest.bodies import config_of, flag, json_body, json_response
from connect.rest.parts import RestParts
from connect.rest.routes import Route
from connect.runtime.stage import request_stage


class Plugins:
    """Endpoints of plugins."""

    def __init__(self, parts: RestParts) -> None:
        self._parts = parts

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        one = "/connector-plugins/{plugin}/config"
        return [
            Route("/connector-plugins", {"GET": self._list}),
            Route(one, {"GET": self._config}),
            Route(f"{one}/validate", {"PUT": self._validate}),
        ]

    async def _list(self, request: Request) -> Response:
        only_connectors = flag(request, "connectorsOnly", True)
        request_stage().enter("listing the plugins")
        return json_response(await self._parts.plugins(only_connectors))

    async def _config(self, request: Request) -> Response:
        request_stage().enter("loading the plugin")
        return json_response(await self._parts.plugin_config(request.path_params["plugin"]))

    async def _validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        config = config_of(await json_body(request))
        own = config.get("connector.class")
        if own is None:
            raise BadRequest("Connector config contains no connector type")
        if _short(own) != _short(plugin):
            raise BadRequest(f"Included connector type {own} does not match request type {plugin}")
        return json_response(await self._parts.validate(config))


def _short(name: str) -> str:
    """Return the last part of a class name, without `Connector` at its end, as Java compares them."""
    return name.rpartition(":")[2].rpartition(".")[2].removesuffix("Connector")
