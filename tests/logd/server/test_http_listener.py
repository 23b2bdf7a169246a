"""The HTTP listener of a broker's process, and when a broker says that it serves clients."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from kafka_client.metrics.exposition import exposition
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from tests.support.logd_process import LogdProcess


def get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=20)


def test_a_process_serves_metrics_and_probes(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "first", {"millstream.http.listener": "127.0.0.1:0"}) as logd:
        match = re.search(r"metrics and health at http://127\.0\.0\.1:(\d+)", logd.log)
        assert match is not None, logd.log
        port = int(match[1])
        assert [get(port, path).status_code for path in ("/livez", "/readyz")] == [200, 200]
        assert "\nkafka_server_replicamanager_partitioncount 0.0\n" in get(port, "/metrics").text
        second = LogdProcess(tmp_path / "second", {"millstream.http.listener": f"127.0.0.1:{port}"})
        second.spawn()
        assert second.wait() == 1
        assert f"logd: cannot listen on 127.0.0.1:{port} for HTTP" in second.log
        logd.stop()


async def test_a_broker_is_ready_from_its_start_to_its_stop(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    server = BrokerServer(from_properties(settings).config)
    assert server.problem() == "the broker is starting"
    await server.start()
    assert server.problem() is None
    await server.stop()
    assert server.problem() == "the broker is stopping"
    assert b"kafka_server_replicamanager_partitioncount" in exposition(server.broker.metrics)
