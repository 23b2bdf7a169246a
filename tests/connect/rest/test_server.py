"""Listeners over real sockets: http, https, admin, basic auth, headers, CORS, and forwarding to a leader."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect.config.rest import BASIC_AUTH, RestConfig
from connect.errors import ConfigError, MillstreamError, NotLeader
from connect.rest.listeners import Listener, advertised_url
from connect.rest.response_headers import parse_rules
from connect.rest.server import RestServer
from tests.connect.rest.conftest import CONFIG, Opening, parts_of
from tests.connect.rest.fake_service import FakeService
from tests.support.certificates import Authority


@asynccontextmanager
async def served(
    service: Any, listeners: str = "http://127.0.0.1:0", **settings: str
) -> AsyncIterator[RestServer]:
    raw = {"listeners": listeners, **{key.replace("_", "."): value for key, value in settings.items()}}
    server = RestServer(RestConfig.parse(raw))
    try:
        server.bind()
        await server.start(parts_of(service, **{"listeners": listeners, **settings}))
        yield server
    finally:
        await server.close()


def client_of(url: str, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, trust_env=False, timeout=20, **options)


async def test_a_listener_serves(service: FakeService) -> None:
    async with served(service) as server, client_of(server.url) as client:
        answer = await client.post("/connectors", json={"name": "a", "config": CONFIG})
        assert answer.headers["location"] == f"{server.url}/connectors/a"
        assert (await client.head("/connectors/a")).content == b""
        assert (await client.get("/metrics")).headers["content-type"].startswith("text/plain")


async def test_a_taken_port_is_refused_with_the_remedy(service: FakeService) -> None:
    async with served(service) as server:
        with pytest.raises(MillstreamError, match="give another host:port"):
            async with served(service, server.url):
                pass


async def test_https(service: FakeService, tmp_path: Path) -> None:
    authority = Authority("test CA")
    issued = authority.issue("worker", hosts=["127.0.0.1"])
    store, trust = issued.write_pem(tmp_path / "worker.pem"), authority.write_pem(tmp_path / "ca.pem")
    settings = {
        "listeners_https_ssl_keystore_type": "PEM",
        "listeners_https_ssl_keystore_location": str(store),
        "listeners_https_ssl_truststore_type": "PEM",
        "listeners_https_ssl_truststore_location": str(trust),
    }
    context = ssl.create_default_context(cafile=str(trust))
    async with served(service, "https://127.0.0.1:0", **settings) as server:
        assert server.url.startswith("https://127.0.0.1:")
        async with client_of(server.url, verify=context) as client:
            assert (await client.get("/")).status_code == 200


async def test_https_needs_a_key(service: FakeService, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        async with served(service, "https://127.0.0.1:0"):
            pass
    store = tmp_path / "worker.jks"
    store.write_bytes(bytes.fromhex("feedfeed"))
    with pytest.raises(ConfigError, match="keytool -importkeystore"):
        async with served(service, "https://127.0.0.1:0", ssl_keystore_location=str(store)):
            pass


def _users(folder: Path, users: str = "ann=s3cret\n") -> dict[str, str]:
    (folder / "users").write_text(users)
    jaas = folder / "jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    jaas.write_text(f'KafkaConnect {{\n  {module} required\n  file="{folder / "users"}";\n}};\n')
    return {"rest_extension_classes": BASIC_AUTH, "java_security_auth_login_config": str(jaas)}


async def test_basic_auth(opened: Opening, service: FakeService, tmp_path: Path) -> None:
    async with opened(**_users(tmp_path)) as client:
        assert (await client.get("/connectors", auth=("ann", "s3cret"))).status_code == 200
        for auth in (("ann", "other"), ("bob", "s3cret"), ("bob", ""), None):
            refused = await client.get("/connectors", auth=auth)
            assert refused.status_code == 401
            assert refused.json()["message"] == "User cannot access the resource."
        headers = {"authorization": "Basic no-base64!"}
        assert (await client.get("/connectors", headers=headers)).status_code == 401
        # Workers' requests to each other have a signature instead.
        assert (await client.post("/connectors/a/tasks", content=b"[]")).status_code == 204
        assert (await client.put("/connectors/a/fence")).status_code == 204
        assert (await client.get("/connectors/a/tasks")).status_code == 401


async def test_basic_auth_without_users_is_refused(opened: Opening, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no user"):
        async with opened(**_users(tmp_path, "")):
            pass
    with pytest.raises(ConfigError, match="is needed for basic auth"):
        RestConfig.parse({"rest.extension.classes": BASIC_AUTH})
    with pytest.raises(ConfigError, match="allowed is only"):
        RestConfig.parse({"rest.extension.classes": "com.example.Other"})


async def test_pages_of_other_origins(opened: Opening) -> None:
    headers = {"origin": "http://page", "access-control-request-method": "PUT"}
    async with opened() as client:
        assert "access-control-allow-origin" not in (await client.get("/", headers=headers)).headers
    settings = {"access_control_allow_origin": "http://page", "access_control_allow_methods": "GET,PUT"}
    async with opened(**settings) as client:
        assert (await client.get("/", headers=headers)).headers[
            "access-control-allow-origin"
        ] == "http://page"
        preflight = await client.options("/connectors", headers=headers)
        assert "PUT" in preflight.headers["access-control-allow-methods"]


async def test_headers_of_answers(opened: Opening) -> None:
    rules = 'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store", setDate Expires: 0'
    async with opened(response_http_headers_config=rules) as client:
        headers = (await client.get("/nothing")).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-cache, no-store"
    assert headers["expires"].endswith("GMT")
    for bad in ("set", "put A: b", "set A b", "set A b: c", "setDate Expires: soon"):
        with pytest.raises(ConfigError):
            parse_rules(bad)


async def test_requests_are_forwarded_to_the_leader(service: FakeService) -> None:
    follower = FakeService()
    async with served(service) as leader, served(follower) as other, client_of(other.url) as client:
        follower.failure = NotLeader("ask the leader", leader.url)
        answer = await client.post("/connectors", json={"name": "a b", "config": CONFIG})
        assert answer.status_code == 201
        assert answer.headers["location"] == f"{leader.url}/connectors/a%20b"
        assert service.configs["a b"]["name"] == "a b"
        assert (await client.put("/connectors/a%20b/stop?x=1")).status_code == 204
        assert (await client.delete("/connectors/no")).json()["message"] == "Connector no not found"
        service.failure = NotLeader("ask the other", other.url)
        lost = await client.delete("/connectors/a%20b")
        assert (lost.status_code, "conflicting operation" in lost.json()["message"]) == (409, True)


def test_the_advertised_address() -> None:
    both = [Listener("https", "", 8443), Listener("http", "127.0.0.1", 8083)]
    texts = "https://:8443,http://127.0.0.1:8083"
    config = RestConfig.parse({"listeners": texts})
    assert advertised_url(config, both) == "http://127.0.0.1:8083"
    own = {"rest.advertised.host.name": "h", "rest.advertised.port": "1", "rest.advertised.listener": "HTTPS"}
    assert advertised_url(RestConfig.parse({"listeners": texts, **own}), both) == "https://h:1"


@pytest.mark.parametrize(
    "listeners", ["localhost:8083", "ftp://h:1", "http://h", "http://h:99999", "http://h:1/x"]
)
def test_a_listener_that_is_none_is_refused(listeners: str) -> None:
    with pytest.raises(ConfigError, match="listeners"):
        RestConfig.parse({"listeners": listeners})
