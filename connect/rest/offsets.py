"""`/connectors/{connector}/offsets`: a connector's offsets (KIP-875)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import json_body, json_response, object_of
from connect.rest.parts import RestParts
from connect.rest.routes import Route

_Pair = tuple[Mapping[str, Any], Mapping[str, Any] | None]


class Offsets:
    """Endpoints of connectors' offsets."""

    def __init__(self, parts: RestParts) -> None:
        self._service = parts.service

    def routes(self) -> list[Route]:
        """Return the routes to these endpoints."""
        endpoints = {"GET": self._get, "PATCH": self._alter, "DELETE": self._reset}
        return [Route("/connectors/{connector}/offsets", endpoints)]

    async def _get(self, request: Request) -> Response:
        return json_response(await self._service.connector_offsets(request.path_params["connector"]))

    async def _alter(self, request: Request) -> Response:
        pairs = _pairs(object_of(await json_body(request)))
        message = await self._service.alter_offsets(request.path_params["connector"], pairs)
        return json_response({"message": message})

    async def _reset(self, request: Request) -> Response:
        return json_response({"message": await self._service.reset_offsets(request.path_params["connector"])})


def _pairs(document: dict[str, Any]) -> list[_Pair]:
    """Return the partitions and offsets of `{offsets: [{partition, offset}]}`; offset None deletes one."""
    if document.keys() - {"offsets"}:
        raise HTTPException(400, "Only the field offsets is known: a list of {partition, offset}")
    listed = document.get("offsets")
    if not listed:
        raise HTTPException(400, "Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(listed, list):
        raise HTTPException(400, "The field offsets must be a list of {partition, offset}")
    pairs: list[_Pair] = []
    for each in listed:
        entry = object_of(each, "Each of offsets")
        if entry.keys() - {"partition", "offset"}:
            raise HTTPException(400, "Each of offsets must be {partition, offset}")
        offset = entry.get("offset")
        partition = object_of(entry.get("partition"), "A partition")
        pairs.append((partition, None if offset is None else object_of(offset, "An offset")))
    return pairs
