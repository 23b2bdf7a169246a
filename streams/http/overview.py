"""Endpoints for the application's condition: page, status, tasks, lag, restores, topology, metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from kafka_client.errors import MillstreamError
from streams.http.answer_json import json_response
from streams.http.application import Application
from streams.http.page import SECURITY_POLICY, page
from streams.http.text import BadRequest
from streams.queries import StreamsMetadata

LAG_SECONDS = 2.0
"""The timeout of the request for the inputs' log end offsets."""


class Overview:
    """The endpoints of an application."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def page(self, request: Request) -> Response:
        """Return the HTML page."""
        app = self._app
        lag = await self._lag()
        html = page(self._status(lag), app.task_facts(), lag, app.topology.svg())
        return HTMLResponse(html, headers={"content-security-policy": SECURITY_POLICY})

    async def status(self, request: Request) -> Response:
        """Return state, counters, and lag, which is null if no broker answers."""
        return json_response(self._status(await self._lag()))

    async def tasks(self, request: Request) -> Response:
        """Return each task and each copy of this instance."""
        return json_response(self._app.task_facts())

    async def lag(self, request: Request) -> Response:
        """Return the total lag and that of each input partition."""
        return json_response(await self._lag())

    async def restore(self, request: Request) -> Response:
        """Return the progress of tasks being restored and of copies."""
        facts = [each for each in self._app.task_facts() if each["role"] != "active"]
        return json_response({"remaining": sum(each["remaining"] for each in facts), "tasks": facts})

    async def topology(self, request: Request) -> Response:
        """Return the topology as JSON, or in another ``format``: text, mermaid or svg."""
        topology = self._app.topology
        match request.query_params.get("format", "json"):
            case "json":
                return json_response(topology.outline())
            case "text":
                return PlainTextResponse(topology.describe())
            case "mermaid":
                return PlainTextResponse(topology.mermaid())
            case "svg":
                return Response(topology.svg(), media_type="image/svg+xml")
            case other:
                raise BadRequest(f"format={other}: json, text, mermaid or svg")

    async def metadata(self, request: Request) -> Response:
        """Return the tasks, stores and partitions of each instance."""
        return json_response([_facts(each) for each in self._app.metadata_for_all_streams_clients()])

    def _status(self, lag: Mapping[str, Any]) -> dict[str, Any]:
        app = self._app
        return {
            "application_id": app.config.application_id,
            "state": app.state.value,
            "paused": app.is_paused,
            "host": None if app.host is None else str(app.host),
            "lag": lag["lag"],
            **app.summary(),
        }

    async def _lag(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(LAG_SECONDS):
                lags = await self._app.lags()
        except (MillstreamError, TimeoutError):
            return {"lag": None, "inputs": []}
        inputs = [
            {"input": str(tp), "position": position, "end": end, "lag": abs(end - position)}
            for tp, (position, end) in sorted(lags.items())
        ]
        return {"lag": sum(each["lag"] for each in inputs), "inputs": inputs}


def _facts(metadata: StreamsMetadata) -> dict[str, Any]:
    return {
        "host": str(metadata.host),
        "tasks": sorted(metadata.tasks),
        "standby_tasks": sorted(metadata.standby_tasks),
        "stores": sorted(metadata.state_store_names),
        "standby_stores": sorted(metadata.standby_state_store_names),
        "topic_partitions": sorted(map(str, metadata.topic_partitions)),
    }
