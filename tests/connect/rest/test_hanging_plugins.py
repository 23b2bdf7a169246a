"""Plugins that hang while the REST interface checks or lists them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from connect.api import Config, SinkConnector, SinkTask, setting
from connect.config.rest import RestConfig
from connect.rest.app import make_app
from connect.rest.assembly import rest_parts
from connect.runtime import WorkerConfig
from tests.connect.rest.fake_service import FakeService

released = threading.Event()
"""Ends all hanging calls."""


class HangingConfig(Config):
    """Settings of the sink."""

    block: str = setting("Where the sink hangs.", default="", visible=lambda values: hang("config", values))


def hang(point: str, config: Any) -> bool:
    """Wait for the end of the test if the config names this point."""
    if config.get("block") == point:
        assert threading.current_thread() is not threading.main_thread(), "it would stop the event loop"
        released.wait()
    return True


class HangingSink(SinkConnector):
    """A sink that hangs in a check of its config."""

    CONFIG = HangingConfig
    task_class = SinkTask

    def validate(self, config: Any) -> None:
        hang("validate", config)


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    """End the hanging calls with the test."""
    released.clear()
    yield
    released.set()


def config(block: str = "") -> dict[str, str]:
    return {"connector.class": f"{__name__}:HangingSink", "topics": "t", "block": block}


def client(timeout_ms: int) -> httpx.AsyncClient:
    """Return a client of a worker whose requests time out after so long."""
    rest = RestConfig.parse({"rest.request.timeout.ms": str(timeout_ms)})
    parts = rest_parts(FakeService(), WorkerConfig.parse({}), rest)
    return httpx.AsyncClient(transport=httpx.ASGITransport(make_app(parts)), base_url="http://worker:8083")


@pytest.mark.parametrize(
    ("point", "stage"),
    [
        ("validate", "performing multi-property validation for the connector"),
        ("config", "validating connector configuration"),
    ],
)
async def test_a_check_that_hangs_is_answered_with_its_stage(
    point: str, stage: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(500) as impatient, client(60_000) as patient:
        body = {"name": "a", "config": config(point)}
        answer = await impatient.post("/connectors", json=body)
        assert answer.status_code == 500
        assert answer.json()["message"].startswith(
            f"Request timed out. The worker is currently {stage}, which began at "
        )
        assert caplog.text.count("a call of a plugin does not return, and is abandoned") == 1
        for other in (impatient, patient):
            assert (await other.get("/connectors")).json() == []
        answer = await patient.post("/connectors", json={"name": "b", "config": config()})
        assert answer.status_code == 201


async def test_checks_that_hang_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect.rest.assembly.VALIDATIONS_MAX", 2)
    async with client(300) as impatient:
        path = "/connector-plugins/HangingSink/config/validate"
        messages = [(await impatient.put(path, json=config("validate"))).json()["message"] for _ in range(3)]
    stages = [message.partition("currently ")[2].partition(",")[0] for message in messages]
    assert stages == [
        "performing multi-property validation for the connector",
        "performing multi-property validation for the connector",
        "waiting for a new thread to become available for connector validation",
    ]
