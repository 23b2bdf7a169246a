"""Listeners with TLS and SASL PLAIN: real clients log in, and others get an error of their own."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import AuthenticationFailed, ErrorCode, MillstreamError
from kafka_client.security.settings import SecuritySettings
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.server import sasl_gate
from tests.support.certificates import Authority
from tests.support.raw_client import RawClient

PASSWORD = "s3cret-of-alice"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
CA = Authority("test CA")


def settings(folder: Path, protocol: str, **more: str) -> dict[str, str]:
    CA.issue("broker", ["127.0.0.1"]).write_pem(folder / "broker.pem")
    CA.write_pem(folder / "ca.pem")
    return {
        "listeners": "OUT://127.0.0.1:0",
        "listener.security.protocol.map": f"OUT:{protocol}",
        "log.dirs": str(folder / "logs"),
        "listener.name.out.ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.out.plain.sasl.jaas.config": JAAS,
        **more,
    }


def client_keys(folder: Path, protocol: str, password: str = PASSWORD) -> dict[str, str]:
    keys = {"security.protocol": protocol}
    if protocol.startswith("SASL"):
        keys |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": password}
    if protocol.endswith("SSL"):
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    return keys


class Running:
    def __init__(self, properties: dict[str, str]) -> None:
        self.server = BrokerServer(from_properties(properties).config)

    async def __aenter__(self) -> str:
        await self.server.start()
        return str(self.server.broker.endpoint)

    async def __aexit__(self, *error: object) -> None:
        await self.server.stop()


async def topics_of(address: str, keys: dict[str, str]) -> None:
    security = SecuritySettings.from_properties(keys)
    async with Client(address, security=security) as client:
        await client.metadata()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert PASSWORD not in caplog.text
    return [
        each.getMessage()
        for each in caplog.records
        if each.levelno >= logging.WARNING and each.name.startswith("logd")
    ]


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
async def test_records_pass(tmp_path: Path, protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(settings(tmp_path, protocol)) as address:
        options = [
            f"-X{key}={value}"
            for key, value in client_keys(tmp_path, protocol).items()
            if "truststore" not in key
        ]
        if protocol.endswith("SSL"):
            options.append(f"-Xssl.ca.location={tmp_path / 'ca.pem'}")
        value = "x" * 900_000

        def kcat(*arguments: str, data: str = "") -> str:
            command = ["kcat", "-b", address, *options, *arguments]
            return subprocess.run(
                command, input=data, text=True, capture_output=True, timeout=240, check=True
            ).stdout

        await asyncio.to_thread(kcat, "-P", "-t", "big", data="\n".join([value] * 6) + "\n")
        output = await asyncio.to_thread(kcat, "-C", "-t", "big", "-e", "-q")
    assert output.split() == [value] * 6
    assert warnings_of(caplog) == []


async def test_wrong_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(settings(tmp_path, "SASL_PLAINTEXT")) as address:
        with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
            await topics_of(address, client_keys(tmp_path, "SASL_PLAINTEXT", "wrong-word"))
    assert [line.partition(": ")[2] for line in warnings_of(caplog)] == [
        "login failed: Authentication failed: Invalid username or password; connection closed"
    ]
    assert "wrong-word" not in caplog.text


async def log_in(address: str, password: str) -> SaslAuthenticateResponse:
    def whole() -> SaslAuthenticateResponse:
        with RawClient(int(address.rpartition(":")[2])) as client:
            assert client.request(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
            message = f"\0alice\0{password}".encode()
            answer: SaslAuthenticateResponse = client.request(SaslAuthenticateRequest(auth_bytes=message), 2)
            return answer

    return await asyncio.to_thread(whole)


@pytest.mark.parametrize("lifetime_ms", [None, 3_600_000])
async def test_a_session_lasts_as_long_as_the_setting_says(tmp_path: Path, lifetime_ms: int | None) -> None:
    more = {} if lifetime_ms is None else {"connections.max.reauth.ms": str(lifetime_ms)}
    async with Running(settings(tmp_path, "SASL_PLAINTEXT", **more)) as address:
        assert (await log_in(address, PASSWORD)).session_lifetime_ms == (lifetime_ms or 0)


@pytest.mark.parametrize("delay_ms", [None, 1])
async def test_a_failed_login_is_answered_after_the_delay(
    tmp_path: Path, delay_ms: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        delays.append(seconds)
        await sleep(0)

    monkeypatch.setattr(sasl_gate, "asyncio", SimpleNamespace(sleep=note))
    more = {} if delay_ms is None else {"connection.failed.authentication.delay.ms": str(delay_ms)}
    async with Running(settings(tmp_path, "SASL_PLAINTEXT", **more)) as address:
        answer = await log_in(address, "wrong-word")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert delays == [(100 if delay_ms is None else delay_ms) / 1000]


async def test_no_request_is_served_before_the_login(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Running(settings(tmp_path, "SASL_PLAINTEXT")) as address:
        with pytest.raises(MillstreamError):
            await topics_of(address, {"security.protocol": "PLAINTEXT", "request.timeout.ms": "2000"})
    assert any("before its login (SASL)" in line for line in warnings_of(caplog))


async def test_plain_text_at_a_tls_port(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(settings(tmp_path, "SSL")) as address:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x00\x00\x00\x13\x00\x12\x00\x03\x00\x00\x00\x00\x00\x01a\x00\x02b\x02c\x00")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(100)
        writer.close()
    assert [line.partition(": ")[2] for line in warnings_of(caplog)] == [
        "TLS handshake failed: the client speaks no TLS (security.protocol); connection closed"
    ]


async def test_client_certificate_is_required(tmp_path: Path) -> None:
    async with Running(settings(tmp_path, "SSL", **{"ssl.client.auth": "required"})) as address:
        keys = client_keys(tmp_path, "SSL")
        with pytest.raises(MillstreamError):
            await topics_of(address, keys)
        CA.issue("alice").write_pem(tmp_path / "alice.pem")
        mine = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "alice.pem")}
        await topics_of(address, keys | mine)


async def create_topic(address: str, folder: Path, user: str) -> None:
    CA.issue(user).write_pem(folder / f"{user}.pem")
    keys = client_keys(folder, "SSL")
    keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / f"{user}.pem")}
    async with Client(address, security=SecuritySettings.from_properties(keys)) as client:
        await Admin(client).create_topics([NewTopic(f"of-{user}", 1, 1)])


def is_closed(address: str, folder: Path, user: str) -> bool:
    """Return True if the broker closes the connection of a user with a certificate."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(CA.issue(user).write_pem(folder / f"{user}.pem"))
    with RawClient(int(address.rpartition(":")[2])) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
        return client.is_closed_by_peer()


async def test_principals_come_from_certificates_by_the_rules(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    more = {
        "ssl.client.auth": "required",
        "listener.name.out.ssl.principal.mapping.rules": "RULE:^CN=(Alice|Bob)$/$1/L",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    }
    async with Running(settings(tmp_path, "SSL", **more)) as address:
        await create_topic(address, tmp_path, "Alice")
        with pytest.raises(MillstreamError, match="AUTHORIZATION_FAILED"):
            await create_topic(address, tmp_path, "Bob")
        assert await asyncio.to_thread(is_closed, address, tmp_path, "Carol")
    (line,) = warnings_of(caplog)
    assert "no rule of ssl.principal.mapping.rules applies to the certificate's name 'CN=Carol'" in line
