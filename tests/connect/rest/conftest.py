"""The REST interface over a service in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest

from connect.config.rest import RestConfig
from connect.errors import NotFound
from connect.rest.app import Side, make_app
from connect.rest.parts import RestParts
from kafka_client.metrics.metrics import Metrics
from tests.connect.rest.fake_service import FakeService

CONFIG = {"connector.class": "Counting", "topic": "t"}
Opening = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


async def validate(config: Mapping[str, str]) -> dict[str, Any]:
    errors = [] if config.get("limit", "1").isdecimal() else ["Invalid value for configuration limit"]
    value = {"name": "limit", "value": None, "errors": errors, "recommended_values": [], "visible": True}
    return {"name": "Counting", "error_count": len(errors), "groups": [], "configs": [{"value": value}]}


async def plugins(only_connectors: bool) -> list[dict[str, str]]:
    listed = [{"class": "Counting", "type": "source", "version": "1"}]
    return listed if only_connectors else [*listed, {"class": "Json", "type": "converter"}]


async def plugin_config(name: str) -> list[dict[str, Any]]:
    if name != "Counting":
        raise NotFound(f"Unknown plugin {name}.")
    return [{"name": "topic"}]


def parts_of(service: Any, **settings: str) -> RestParts:
    return RestParts(
        service=service,
        validate=validate,
        plugins=plugins,
        plugin_config=plugin_config,
        config=RestConfig.parse({key.replace("_", "."): value for key, value in settings.items()}),
        registry=Metrics(),
    )


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def opened(service: FakeService) -> Opening:
    """Return what opens a client of the REST interface, with settings by their attributes' names."""

    @asynccontextmanager
    async def opening(side: Side = "all", **settings: str) -> AsyncIterator[httpx.AsyncClient]:
        app = make_app(parts_of(service, **settings), side=side)
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://worker:8083") as client:
                yield client
        finally:
            app.state.close()

    return opening
