"""The HTTP server's port, error answers, metrics and orderly shutdown, with an app of a few endpoints."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kafka_client import http
from kafka_client.errors import MillstreamError
from kafka_client.http.errors import EXCEPTION_HANDLERS
from kafka_client.http.metrics import metrics_endpoint
from kafka_client.http.server import HttpServer
from kafka_client.metrics.metrics import Metrics


class View:
    """`/slow` answers once `go_on` is set."""

    def __init__(self) -> None:
        self.started, self.go_on = asyncio.Event(), asyncio.Event()
        metrics = Metrics()
        metrics.add("kafka.test", "some-metrics", lambda: {"things-total": 3}, client_id="c")
        routes = {
            "/slow": self._slow,
            "/broken": self._broken,
            "/refused": self._refused,
            "/metrics": metrics_endpoint(metrics),
        }
        self.app = Starlette(
            routes=[Route(path, endpoint) for path, endpoint in routes.items()],
            exception_handlers=EXCEPTION_HANDLERS,
        )

    async def _slow(self, request: Request) -> Response:
        self.started.set()
        await self.go_on.wait()
        return PlainTextResponse("done")

    async def _broken(self, request: Request) -> Response:
        raise ZeroDivisionError("a secret")

    async def _refused(self, request: Request) -> Response:
        raise HTTPException(409, "there is one already")


@asynccontextmanager
async def served(
    view: View, listener: str = "127.0.0.1:0"
) -> AsyncIterator[tuple[HttpServer, httpx.AsyncClient]]:
    server = HttpServer(view.app, listener)
    await server.start()
    url = f"http://{listener.rpartition(':')[0]}:{server.port}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
            yield server, client
    finally:
        await server.close()


def test_errors_are_json_and_tell_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async def case() -> None:
        async with served(View()) as (_, client):
            for path, status, message in [
                ("/nothing", 404, "GET /nothing: Not Found"),
                ("/refused", 409, "there is one already"),
                ("/broken", 500, "GET /broken failed: the log says why"),
            ]:
                response = await client.get(path)
                assert response.status_code == status
                assert response.json() == {"error_code": status, "message": message}

    with caplog.at_level(logging.ERROR):
        asyncio.run(case())
    assert "a secret" in caplog.text


async def test_metrics_are_in_prometheus_text() -> None:
    async with served(View()) as (_, client):
        response = await client.get("/metrics")
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'kafka_test_some_metrics_things_total{client_id="c"} 3.0' in response.text


async def test_a_request_at_work_is_answered_before_the_end() -> None:
    view = View()
    async with served(view) as (server, client):
        asking = asyncio.create_task(client.get("/slow"))
        await view.started.wait()
        closing = asyncio.create_task(server.close())
        await asyncio.sleep(0)
        assert not closing.done()
        view.go_on.set()
        assert (await asking).text == "done"
        await closing
        with pytest.raises(httpx.ConnectError):
            await client.get("/metrics")
        await server.close()


async def test_a_port_is_taken_once() -> None:
    async with served(View()) as (server, _):
        other = HttpServer(View().app, f"127.0.0.1:{server.port}")
        with pytest.raises(MillstreamError, match=f"cannot listen on 127.0.0.1:{server.port} for HTTP"):
            other.bind()
        await other.close()


def test_a_listener_may_be_an_ipv6_address() -> None:
    server = HttpServer(View().app, "[::1]:7070")
    assert (server.host, server.port) == ("::1", 7070)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MillstreamError, match=r"http\.listener needs uvicorn.*'millstream\[http\]'"):
        http.check_installed("http.listener")
