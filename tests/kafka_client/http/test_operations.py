"""A daemon's HTTP listener: its metrics, its answers to probes, and the addresses it accepts."""

from __future__ import annotations

import httpx
import pytest

from kafka_client.errors import ConfigError, MillstreamError
from kafka_client.http.address import check_address, is_address, next_port
from kafka_client.http.operations import OperationsServer
from kafka_client.metrics.metrics import Metrics


async def test_metrics_and_probes() -> None:
    metrics = Metrics()
    metrics.add("kafka.test", "some-metrics", lambda: {"things-total": 3}, client_id="c")
    problem: str | None = "the log directories are being opened"
    async with OperationsServer("127.0.0.1:0", metrics, ready=lambda: problem) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
            live, ready = await client.get("/livez"), await client.get("/readyz")
            assert (live.status_code, live.json()) == (200, {"status": "ok"})
            assert (ready.status_code, ready.json()) == (503, {"error_code": 503, "message": problem})
            problem = None
            assert (await client.get("/readyz")).status_code == 200
            text = (await client.get("/metrics")).text
            assert 'kafka_test_some_metrics_things_total{client_id="c"} 3.0\n' in text
            assert (await client.post("/livez")).status_code == 405
            refused = await client.get("/livez", headers={"host": "evil.example"})
            assert refused.status_code == 421


async def test_a_taken_port_is_named() -> None:
    async with OperationsServer("127.0.0.1:0", Metrics(), ready=lambda: None) as first:
        second = OperationsServer(f"127.0.0.1:{first.port}", Metrics(), ready=lambda: None)
        with pytest.raises(MillstreamError, match=f"cannot listen on 127.0.0.1:{first.port} for HTTP"):
            async with second:
                raise AssertionError("it listens")


def test_addresses() -> None:
    assert [is_address(each) for each in ("h:0", "[::1]:7070", "127.0.0.1:65535")] == [True] * 3
    assert not any(is_address(each) for each in ("", ":80", "h", "h:65536", "::1:80", "h:x", "a b:1"))
    with pytest.raises(ConfigError, match=r"http\.listener"):
        check_address("http.listener", "h")
    following = [next_port(each, 2) for each in ("h:80", "[::1]:80", "h:0", "")]
    assert following == ["h:82", "[::1]:82", "h:0", ""]
