"""TLS and users of an HTTP listener, and files of them that change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from kafka_client.errors import ConfigError
from kafka_client.http.access import HttpAccess, client_tls
from kafka_client.http.operations import OperationsServer
from kafka_client.metrics.metrics import Metrics
from tests.support.certificates import Authority
from tests.support.waiting import until

CA = Authority("test CA")
PASSWORD = "s3cret: größe"
PREFIX = "http."


def secured(folder: Path) -> dict[str, str]:
    CA.write_pem(folder / "ca.pem")
    users = folder / "users.properties"
    users.write_text(f"alice={PASSWORD.replace('ö', chr(92) + 'u00f6').replace('ß', chr(92) + 'u00df')}\n")
    return {
        "http.ssl.keystore.location": str(CA.issue("daemon", ["127.0.0.1"]).write_pem(folder / "daemon.pem")),
        "http.ssl.keystore.type": "PEM",
        "http.ssl.truststore.location": str(folder / "ca.pem"),
        "http.ssl.truststore.type": "PEM",
        "http.basic.auth.users.file": str(users),
        "http.listener": "127.0.0.1:0",
    }


def server(access: HttpAccess | None = None, host: str = "127.0.0.1") -> OperationsServer:
    return OperationsServer(f"{host}:0", Metrics(), ready=lambda: None, access=access)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem)


def client(port: int, tls: ssl.SSLContext) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"https://127.0.0.1:{port}", verify=tls, trust_env=False, timeout=20)


@contextmanager
def looking(seconds: float) -> Iterator[None]:
    usual = OperationsServer.look_seconds
    OperationsServer.look_seconds = seconds
    try:
        yield
    finally:
        OperationsServer.look_seconds = usual


async def test_only_users_are_served_over_tls(tmp_path: Path) -> None:
    async with server(HttpAccess(secured(tmp_path), PREFIX)) as running:
        async with client(running.port, trusting(CA)) as asking:
            for path in ("/metrics", "/livez", "/readyz", "/nowhere"):
                refused = await asking.get(path)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == 'Basic realm="millstream"'
                assert refused.json() == {"error_code": 401, "message": "User cannot access the resource."}
            for user, password in (("alice", "wrong"), ("bob", PASSWORD), ("", ""), ("alice", "")):
                assert (await asking.get("/livez", auth=(user, password))).status_code == 401
            for header in ("Basic", "Basic !", "Bearer x", "Basic YWxpY2U="):
                assert (await asking.get("/livez", headers={"authorization": header})).status_code == 401
            assert (await asking.get("/livez", auth=("alice", PASSWORD))).status_code == 200
        async with client(running.port, ssl.create_default_context()) as asking:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await asking.get("/livez")
        async with httpx.AsyncClient(trust_env=False) as asking:
            with pytest.raises(httpx.HTTPError):
                await asking.get(f"http://127.0.0.1:{running.port}/livez")


async def test_clients_show_a_certificate(tmp_path: Path) -> None:
    properties = secured(tmp_path) | {"http.ssl.client.auth": "required"}
    del properties["http.basic.auth.users.file"]
    access = HttpAccess(properties, PREFIX)
    assert not access.is_open
    async with server(access) as running:
        shown = client_tls(properties, PREFIX)
        assert shown is not None
        async with client(running.port, shown) as asking:
            assert (await asking.get("/livez")).status_code == 200
        async with client(running.port, trusting(CA)) as asking:
            with pytest.raises(httpx.HTTPError):
                await asking.get("/livez")


async def test_changed_files_are_used_and_broken_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    properties, other = secured(tmp_path), Authority("other CA")
    with looking(0.01):
        async with server(HttpAccess(properties, PREFIX)) as running:
            other.issue("daemon", ["127.0.0.1"]).write_pem(tmp_path / "daemon.pem")
            (tmp_path / "users.properties").write_text("bob=other\n")
            await until(lambda: "changed certificates and users are in force" in caplog.text)
            (tmp_path / "daemon.pem").write_text("broken")
            await until(lambda: "the last ones stay in force" in caplog.text)
            async with client(running.port, trusting(other)) as asking:
                assert (await asking.get("/livez", auth=("bob", "other"))).status_code == 200
                assert (await asking.get("/livez", auth=("alice", PASSWORD))).status_code == 401
    assert PASSWORD not in caplog.text


async def test_a_listener_for_everybody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    for host, warnings in (("127.0.0.1", 0), ("0.0.0.0", 1)):
        async with server(host=host):
            warned = [each for each in caplog.records if "no authentication" in each.getMessage()]
            assert len(warned) == warnings


@pytest.mark.parametrize(
    ("changes", "key", "remedy"),
    [
        ({"ssl.keystore.locaton": "x"}, "http.ssl.keystore.locaton", r"http\.ssl\.keystore\.location\?"),
        ({"basic.auth.users": "x"}, "http.basic.auth.users", r"basic\.auth\.users\.file\?"),
        ({"ssl.client.auth": "maybe"}, "http.ssl.client.auth", "required"),
        ({"ssl.keystore.location": "/none"}, "ssl.keystore.location", "cannot be read|No such file"),
        ({"ssl.keystore.location": ""}, "http.ssl.keystore.location", "is needed, as ssl.keystore.type"),
        ({"basic.auth.users.file": "/none"}, "http.basic.auth.users.file", "No such file"),
        ({"basic.auth.users.file": "/dev/null"}, "http.basic.auth.users.file", "name=password"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, changes: dict[str, str], key: str, remedy: str) -> None:
    changed = {PREFIX + name: value for name, value in changes.items()}
    properties = {name: value for name, value in {**secured(tmp_path), **changed}.items() if value}
    with pytest.raises(ConfigError, match=remedy) as error:
        HttpAccess(properties, PREFIX)
    assert key in str(error.value)
