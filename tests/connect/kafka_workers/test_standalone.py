"""Kafka's StandaloneWorkerIntegrationTest against our standalone worker.

| Kafka's method | our test |
|---|---|
| testDynamicLogging | test_levels_of_loggers_are_changed_for_each_scope |
| testHealthCheck | test_a_worker_is_healthy_once_its_connectors_have_started |
| testCreateConnectorWithStoppedInitialState | in tests/connect/integration/test_standalone_service.py |

A connector that hangs in its plan of tasks does not make our worker unhealthy, as it does there: see
`test_a_connector_that_hangs_can_be_changed_and_deleted`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from connect.config.rest import RestConfig
from connect.rest.app import make_app
from connect.rest.assembly import rest_parts
from connect.runtime import Worker
from connect.runtime.standalone_service import StandaloneService
from kafka_client.http.client import HttpClient
from tests.connect.kafka_workers.plugins import MonitorableSource, reference, release_file
from tests.support.ports import free_port

Levels = dict[str, dict[str, Any]]
SPACES = {None: "levels.of.connect", "worker": "levels.of.clients", "cluster": "levels.of.streams"}
"""The namespace to change with each scope: it has a logger with a level of its own, and one without."""


@pytest.fixture
def loggers() -> Iterator[None]:
    """Have loggers in each namespace, whose levels are taken back in the end."""
    for space in SPACES.values():
        logging.getLogger(f"{space}.own").setLevel(logging.ERROR)
        logging.getLogger(f"{space}.inherited")
    yield
    for name in list(logging.getLogger().manager.loggerDict):
        if name.startswith("levels.of."):
            logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
async def client(kit) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a standalone worker's REST interface."""
    async with Worker(kit.config()) as worker:
        app = make_app(rest_parts(StandaloneService(worker), worker.config, RestConfig.parse({})))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://worker:8083") as client:
            yield client


async def levels_of(client: httpx.AsyncClient) -> Levels:
    levels: Levels = (await client.get("/admin/loggers")).json()
    return levels


async def put_level(client: httpx.AsyncClient, name: str, level: str, scope: str | None) -> Any:
    query = {} if scope is None else {"scope": scope}
    answer = await client.put(f"/admin/loggers/{name}", json={"level": level}, params=query)
    assert answer.status_code == (204 if scope == "cluster" else 200)
    return answer.json() if answer.content else None


async def change(client: httpx.AsyncClient, space: str, level: str, scope: str | None) -> None:
    """Change the level of a namespace, and check the answers about it and about all other loggers."""
    before, since = await levels_of(client), int(time.time() * 1000)
    affected = await put_level(client, space, level, scope)
    names = {space, f"{space}.own", f"{space}.inherited"}
    assert affected is None if scope == "cluster" else set(affected) == names
    for name in names:
        row = (await client.get(f"/admin/loggers/{name}")).json()
        assert row["level"] == level
        assert row["last_modified"] >= since
    after = await levels_of(client)
    assert set(before) <= set(after)
    assert {name: after[name] for name in before if not name.startswith(space)} == {
        name: row for name, row in before.items() if not name.startswith(space)
    }
    assert {after[name]["level"] for name in after if name.startswith(space)} == {level}
    await put_level(client, space, level, scope)
    assert await levels_of(client) == after, "a level that is set again was changed at no later time"


async def test_levels_of_loggers_are_changed_for_each_scope(client: httpx.AsyncClient, loggers: None):
    before = await levels_of(client)
    assert {row["last_modified"] for row in before.values()} == {None}
    for (scope, space), level in zip(SPACES.items(), ("DEBUG", "INFO", "TRACE"), strict=True):
        await put_level(client, space, "WARN", scope)
        await change(client, space, level, scope)


def test_a_worker_is_healthy_once_its_connectors_have_started(kit, topic, tmp_path):
    url, events = f"http://127.0.0.1:{free_port()}", tmp_path / "a.events"
    kit.settings |= {"listeners": url}
    config = {"name": "a", "connector.class": reference(MonitorableSource), "topic": topic}
    process = kit.spawn(config | {"throughput": "10", "events": str(events), "block": "Connector::start"})
    http = HttpClient(timeout=60)

    def answer(path: str) -> tuple[int, dict[str, Any]]:
        try:
            response = http.request("GET", url + path, None, {})
        except OSError:
            return 0, {}
        return response.status, json.loads(response.body)

    kit.wait_until(events.exists, process)
    status, health = answer("/health")
    assert (status, health["status"]) == (503, "starting")
    assert "Worker is still starting up" in health["message"]
    release_file(events).touch()
    kit.wait_until(lambda: answer("/health")[0] == 200, process)
    text = "Worker has completed startup and is ready to handle requests."
    assert answer("/health")[1] == {"status": "healthy", "message": text}
    tasks = answer("/connectors/a/status")[1]["tasks"]
    kit.wait_until(lambda: answer("/connectors/a/status")[1]["tasks"][0]["state"] == "RUNNING", process)
    assert len(tasks) == 1, "a worker that calls itself healthy has planned the tasks"
