"""`/connectors/{connector}/offsets`: a connector's offsets (KIP-875)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.rest.bodies import json_body, json_response
from connect.rest.parts import RestParts
from connect.rest.routes import Route

_Pair = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]


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
        pairs = _pairs(await json_body(request))
        message = await self._service.alter_offsets(request.path_params["connector"], pairs)
        return json_response({"message": message})

    async def _reset(self, request: Request) -> Response:
        return json_response({"message": await self._service.reset_offsets(request.path_params["connector"])})


def _pairs(document: Any) -> list[_Pair]:
    """Return the partitions and offsets of `{offsets: [{partition, offset}]}`; offset None deletes one.

    A partition that is null or missing is None: what that means differs between sources and sinks. Messages
    begin as Kafka's do.
    """
    if not isinstance(document, dict):
        raise HTTPException(400, "Cannot deserialize value: the body must be a JSON object {offsets}")
    _check_fields(document, {"offsets"})
    listed = document.get("offsets")
    if not listed:
        raise HTTPException(400, "Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(listed, list):
        raise HTTPException(400, "Cannot deserialize value: offsets must be a list of {partition, offset}")
    pairs: list[_Pair] = []
    for each in listed:
        if not isinstance(each, dict):
            raise HTTPException(400, "Cannot construct instance: each of offsets must be {partition, offset}")
        _check_fields(each, {"partition", "offset"})
        pairs.append((_object_or_none(each, "partition"), _object_or_none(each, "offset")))
    return pairs


def _check_fields(document: Mapping[str, Any], fields: Collection[str]) -> None:
    if unknown := sorted(document.keys() - fields):
        raise HTTPException(
            400, f'Unrecognized field "{unknown[0]}"; the fields are {", ".join(sorted(fields))}'
        )


def _object_or_none(entry: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    value = entry.get(field)
    if value is not None and not isinstance(value, dict):
        raise HTTPException(400, f"Cannot deserialize value: {field} must be a JSON object or null")
    return value
