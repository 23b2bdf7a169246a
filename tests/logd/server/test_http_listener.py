"""The HTTP listener of a broker's process, and when a broker says that it serves clients."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import httpx
import pytest

from kafka_client.errors import ConfigError
from kafka_client.metrics.exposition import exposition
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from tests.support.certificates import Authority
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


def test_a_process_serves_its_users_over_tls(tmp_path: Path) -> None:
    authority, users = Authority("test CA"), tmp_path / "users"
    users.write_text("prometheus=s3cret\n")
    settings = {
        "millstream.http.listener": "127.0.0.1:0",
        "millstream.http.ssl.keystore.type": "PEM",
        "millstream.http.ssl.keystore.location": authority.issue("b", ["127.0.0.1"]).write_pem(
            tmp_path / "b.pem"
        ),
        "millstream.http.basic.auth.users.file": users,
    }
    with LogdProcess(tmp_path / "logs", settings) as logd:
        match = re.search(r"metrics and health at (https://127\.0\.0\.1:\d+)", logd.log)
        assert match is not None, logd.log
        trust = ssl.create_default_context(cadata=authority.pem)
        with httpx.Client(base_url=match[1], verify=trust, trust_env=False, timeout=20) as client:
            assert client.get("/livez").status_code == 401
            assert client.get("/metrics", auth=("prometheus", "s3cret")).status_code == 200
        logd.stop()
    with pytest.raises(ConfigError, match=r"millstream\.http\.ssl\.keystore\.type\?"):
        from_properties({"millstream.http.ssl.keystore.typ": "PEM"})


async def test_a_broker_is_ready_from_its_start_to_its_stop(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    server = BrokerServer(from_properties(settings).config)
    assert server.problem() == "the broker is starting"
    await server.start()
    assert server.problem() is None
    await server.stop()
    assert server.problem() == "the broker is stopping"
    assert b"kafka_server_replicamanager_partitioncount" in exposition(server.broker.metrics)
