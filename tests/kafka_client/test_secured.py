"""TLS and SASL of the client against a scripted broker: what goes wrong, and sessions that are renewed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Client
from kafka_client.errors import AuthenticationFailed, ConnectionClosed, MillstreamError, TlsFailed
from kafka_client.security.secret import Secret
from kafka_client.security.settings import SecuritySettings
from kafka_client.security.token import Token
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_client.wire.messages.metadata import MetadataRequest
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.kafka_client.fake_broker import CUT, FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK, run
from tests.kafka_client.security.scram_server import ScramServer
from tests.support.certificates import Authority
from tests.support.waiting import until

PASSWORD = "hunter2"
ILLEGAL_SASL_STATE, UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 34, 33, 58


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("test CA")


def sasl(mechanism: str, protocol: str = "SASL_PLAINTEXT", **more: str) -> SecuritySettings:
    properties = {"sasl.username": "alice", "sasl.password": PASSWORD, **more}
    return SecuritySettings.from_properties(
        {"security.protocol": protocol, "sasl.mechanism": mechanism, **properties}
    )


def tls(authority: Authority, **more: str) -> SecuritySettings:
    properties = {"ssl.truststore.certificates": authority.pem, **more}
    return SecuritySettings.from_properties({"security.protocol": "SSL", **properties})


def accept_plain(broker: FakeBroker, *lifetimes_ms: int) -> None:
    """Logins by PLAIN with the right password; sessions live so long, the last number goes for all others."""
    lifetimes = list(lifetimes_ms) or [0]

    def authenticate(request: ReceivedRequest) -> SaslAuthenticateResponse:
        if request.message.auth_bytes != f"\0alice\0{PASSWORD}".encode():
            return SaslAuthenticateResponse(error_code=AUTHENTICATION_FAILED, error_message="wrong password")
        lifetime = lifetimes.pop(0) if len(lifetimes) > 1 else lifetimes[0]
        return SaslAuthenticateResponse(session_lifetime_ms=lifetime)

    broker.on(ApiKey.SASL_HANDSHAKE, lambda request: SaslHandshakeResponse(mechanisms=["PLAIN"]))
    broker.on(ApiKey.SASL_AUTHENTICATE, authenticate)


async def fails(
    broker: FakeBroker | int, security: SecuritySettings | None = None, *, once: bool = False
) -> Exception:
    """Return the error that `connect` raises; with `once`, the one of a request without retries."""
    bootstrap = broker.bootstrap if isinstance(broker, FakeBroker) else f"127.0.0.1:{broker}"
    client = Client(bootstrap, security=security, **QUICK)
    with pytest.raises(MillstreamError) as caught:
        await (client.request(MetadataRequest(topics=[])) if once else client.connect())
    await client.close()
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    return caught.value


def apis(broker: FakeBroker) -> list[ApiKey]:
    return [ApiKey(request.api_key) for request in broker.requests]


# --- SASL ---


async def test_the_first_requests_of_a_login() -> None:
    async with FakeBroker() as broker:
        accept_plain(broker)
        async with Client(broker.bootstrap, security=sasl("PLAIN"), **QUICK) as client:
            await client.metadata()
        assert apis(broker)[:4] == [
            ApiKey.API_VERSIONS,
            ApiKey.SASL_HANDSHAKE,
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.METADATA,
        ]
        assert [broker.requests[1].version, broker.requests[2].version] == [1, 2]


async def test_a_wrong_password_ends_at_once_and_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeBroker() as broker:
        accept_plain(broker)
        wrong = sasl("PLAIN", **{"sasl.password": PASSWORD + "!"})
        with caplog.at_level(logging.DEBUG):
            error = await fails(broker, wrong)
        assert isinstance(error, AuthenticationFailed)
        assert (error.mechanism, error.user, error.broker) == ("PLAIN", "alice", broker.bootstrap)
        assert str(error) == f"SASL PLAIN login of 'alice' at {broker.bootstrap} failed: wrong password"
        assert broker.count(ApiKey.SASL_AUTHENTICATE) == 1
        assert PASSWORD not in caplog.text


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_login_by_scram(name: str) -> None:
    async with FakeBroker() as broker:
        servers = [ScramServer(name, PASSWORD), ScramServer(name, "another password")]
        broker.on(ApiKey.SASL_HANDSHAKE, lambda request: SaslHandshakeResponse())

        def scripts(server: ScramServer) -> Any:
            return lambda request: SaslAuthenticateResponse(
                auth_bytes=server.respond(request.message.auth_bytes)
            )

        broker.on(ApiKey.SASL_AUTHENTICATE, scripts(servers[0]))
        async with Client(broker.bootstrap, security=sasl(name), **QUICK) as client:
            await client.metadata()


async def test_a_broker_that_forges_its_signature_gets_no_request() -> None:
    async with FakeBroker() as broker:
        knowing = ScramServer("SCRAM-SHA-256", PASSWORD)
        forged = b"v=" + b"A" * 43 + b"="
        broker.on(ApiKey.SASL_HANDSHAKE, lambda request: SaslHandshakeResponse())
        broker.on(
            ApiKey.SASL_AUTHENTICATE,
            lambda request: SaslAuthenticateResponse(auth_bytes=knowing.respond(request.message.auth_bytes)),
            lambda request: SaslAuthenticateResponse(auth_bytes=forged),
        )
        error = await fails(broker, sasl("SCRAM-SHA-256"))
        assert isinstance(error, AuthenticationFailed)
        assert "signature" in error.reason
        assert ApiKey.METADATA not in apis(broker)


async def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    async with FakeBroker() as broker:
        broker.on(
            ApiKey.SASL_HANDSHAKE,
            lambda request: SaslHandshakeResponse(
                error_code=UNSUPPORTED_MECHANISM, mechanisms=["SCRAM-SHA-512", "GSSAPI"]
            ),
        )
        error = await fails(broker, sasl("PLAIN"))
        assert isinstance(error, AuthenticationFailed)
        assert str(error).endswith("SCRAM-SHA-512, GSSAPI")


async def test_a_login_at_a_listener_without_sasl() -> None:
    async with FakeBroker() as broker:
        answer = SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE)
        broker.on(ApiKey.SASL_HANDSHAKE, lambda request: answer)
        error = await fails(broker, sasl("PLAIN"))
        assert isinstance(error, AuthenticationFailed)
        assert "security.protocol to PLAINTEXT or SSL" in error.reason


async def test_no_login_at_a_listener_with_sasl() -> None:
    async with FakeBroker() as broker:
        broker.on(ApiKey.METADATA, lambda request: CUT)
        error = await fails(broker, once=True)
        assert isinstance(error, ConnectionClosed)
        assert "if the listener asks for SASL, set security.protocol" in str(error)


async def test_the_tokens_source_fails() -> None:
    async with FakeBroker() as broker:

        def source() -> Token:
            raise RuntimeError("no such file")

        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        error = await fails(broker, SecuritySettings.from_properties(properties, token=source))
        assert isinstance(error, AuthenticationFailed)
        assert "no token: RuntimeError" in error.reason
        assert isinstance(error.__cause__, RuntimeError)


async def test_a_refused_token() -> None:
    async with FakeBroker() as broker:
        tokens = []

        def source() -> Token:
            tokens.append(PASSWORD)
            return Token(value=Secret(PASSWORD), expires_at=9e9)

        broker.on(ApiKey.SASL_HANDSHAKE, lambda request: SaslHandshakeResponse())
        broker.on(
            ApiKey.SASL_AUTHENTICATE,
            lambda request: SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'),
            lambda request: SaslAuthenticateResponse(
                error_code=AUTHENTICATION_FAILED, error_message="invalid token"
            ),
        )
        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        error = await fails(broker, SecuritySettings.from_properties(properties, token=source))
        assert isinstance(error, AuthenticationFailed)
        assert error.reason == "invalid token"
        assert [request.message.auth_bytes for request in broker.requests[2:]] == [
            f"n,,\x01auth=Bearer {PASSWORD}\x01\x01".encode(),
            b"\x01",
        ]


# --- sessions ---


async def test_a_session_is_renewed_on_the_live_connection_between_requests() -> None:
    """Requests before and after a renewal are answered; none is sent between handshake and login."""
    async with FakeBroker() as broker:
        accept_plain(broker, 200)
        broker.on(ApiKey.HEARTBEAT, lambda request: HeartbeatResponse())
        async with Client(broker.bootstrap, security=sasl("PLAIN"), **QUICK) as client:

            async def ask_on() -> None:
                while broker.count(ApiKey.SASL_HANDSHAKE) < 4:
                    await client.request(HeartbeatRequest(group_id="g"))

            await asyncio.gather(*(ask_on() for _ in range(5)))
        assert broker.connections == 1
        request = apis(broker)
        renewals = [at for at, key in enumerate(request) if key == ApiKey.SASL_HANDSHAKE]
        assert len(renewals) >= 4
        followers = [request[at + 1] for at in renewals if at + 1 < len(request)]
        assert set(followers) == {ApiKey.SASL_AUTHENTICATE}


async def test_a_renewal_waits_for_what_is_in_flight_and_holds_back_the_rest() -> None:
    async with FakeBroker() as broker:
        accept_plain(broker, 100, 0)
        answer = asyncio.Event()

        async def late(request: ReceivedRequest) -> HeartbeatResponse:
            await answer.wait()
            return HeartbeatResponse()

        broker.on(ApiKey.HEARTBEAT, late)
        async with Client(broker.bootstrap, security=sasl("PLAIN"), **QUICK) as client:
            early = asyncio.create_task(client.request(HeartbeatRequest(group_id="g")))
            connection = await client.connection()
            await until(lambda: connection._is_on_hold)
            held_back = asyncio.create_task(client.request(MetadataRequest(topics=[])))
            await until(lambda: connection._room)
            assert connection.in_flight == 1  # the heartbeat, and no login behind it
            answer.set()
            await asyncio.gather(early, held_back)
        assert apis(broker)[-4:] == [
            ApiKey.HEARTBEAT,
            ApiKey.SASL_HANDSHAKE,
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.METADATA,
        ]
        assert broker.connections == 1


async def test_a_renewal_that_is_refused_ends_the_connection() -> None:
    async with FakeBroker() as broker:
        accept_plain(broker)
        refused = SaslAuthenticateResponse(error_code=AUTHENTICATION_FAILED, error_message="locked out")
        broker.on(
            ApiKey.SASL_AUTHENTICATE,
            lambda request: SaslAuthenticateResponse(session_lifetime_ms=50),
            lambda request: refused,
        )
        async with Client(broker.bootstrap, security=sasl("PLAIN"), **QUICK) as client:
            connection = await client.connection()
            await until(lambda: not connection.is_open)
            with pytest.raises(AuthenticationFailed, match="locked out"):
                await client.request(MetadataRequest(topics=[]))


# --- TLS ---


async def test_a_secured_connection_carries_large_answers(tmp_path: Path, authority: Authority) -> None:
    async with FakeBroker() as broker:
        broker.topics = {f"topic-{'x' * 200}-{number}": {0: 1} for number in range(2_000)}
        await broker.__aexit__()
        broker.tls = authority.issue("broker", ["127.0.0.1"]).server_context(tmp_path)
        await broker.__aenter__()
        accept_plain(broker)
        security = sasl("PLAIN", "SASL_SSL", **{"ssl.truststore.certificates": authority.pem})
        async with Client(broker.bootstrap, security=security, **QUICK) as client:
            assert (await client.metadata()).topics.keys() == broker.topics.keys()


class SecuredBroker(FakeBroker):
    """A scripted broker that speaks TLS."""

    def __init__(self, folder: Path, authority: Authority, *, days_ago: int = 0, trusted: str = "") -> None:
        super().__init__()
        issued = authority.issue("broker", ["127.0.0.1"], days_ago=days_ago)
        self.tls = issued.server_context(folder, trusted)


async def test_an_untrusted_certificate(tmp_path: Path, authority: Authority) -> None:
    async with SecuredBroker(tmp_path, authority) as broker:
        error = await fails(broker, tls(Authority("another CA")))
        assert isinstance(error, TlsFailed)
        assert "not trusted" in str(error) and "ssl.truststore.location" in str(error)
        assert broker.bootstrap in str(error)


async def test_an_expired_certificate(tmp_path: Path, authority: Authority) -> None:
    async with SecuredBroker(tmp_path, authority, days_ago=10) as broker:
        error = await fails(broker, tls(authority))
        assert isinstance(error, TlsFailed)
        assert "has expired" in str(error)


async def test_a_certificate_for_another_host(tmp_path: Path, authority: Authority) -> None:
    async with FakeBroker() as broker:
        pass
    broker.tls = authority.issue("broker", ["elsewhere"]).server_context(tmp_path)
    async with broker:
        error = await fails(broker, tls(authority))
        assert isinstance(error, TlsFailed)
        assert "another host" in str(error) and "ssl.endpoint.identification.algorithm" in str(error)
        lenient = tls(authority, **{"ssl.endpoint.identification.algorithm": ""})
        async with Client(broker.bootstrap, security=lenient, **QUICK) as client:
            await client.metadata()


@contextlib.contextmanager
def blocking_server(context: ssl.SSLContext) -> Iterator[int]:
    """Serve TLS handshakes in a thread and yield the port; asyncio's servers send no alert if one fails."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                with connected, contextlib.suppress(OSError):
                    with contextlib.suppress(OSError):
                        context.wrap_socket(connected.dup(), server_side=True).close()
                    while connected.recv(65_536):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_no_certificate_where_one_is_asked_for(tmp_path: Path, authority: Authority, version: str) -> None:
    async def test(port: int) -> None:
        error = await fails(port, tls(authority, **{"ssl.enabled.protocols": version}))
        assert isinstance(error, TlsFailed), error
        assert "ssl.keystore.location" in str(error)

    issued = authority.issue("broker", ["127.0.0.1"])
    with blocking_server(issued.server_context(tmp_path, authority.pem)) as port:
        run(test(port))


async def test_a_plaintext_client_at_a_listener_with_tls(tmp_path: Path, authority: Authority) -> None:
    async with SecuredBroker(tmp_path, authority) as broker:
        error = await fails(broker, once=True)
        assert "security.protocol to SSL or SASL_SSL" in str(error)


async def test_a_tls_alert_in_place_of_an_answer() -> None:
    async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(bytes.fromhex("15030300020250"))
        writer.close()

    server = await asyncio.start_server(alert, "127.0.0.1", 0)
    async with server:
        error = await fails(server.sockets[0].getsockname()[1])
    assert isinstance(error, TlsFailed)
    assert "security.protocol to SSL or SASL_SSL" in str(error)


async def test_a_tls_client_at_a_plaintext_listener(authority: Authority) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(b"\0\0\0\4what")
        await writer.drain()
        writer.close()

    for server, kind in ((hang_up, ConnectionClosed), (answer, TlsFailed)):
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        async with listening:
            error = await fails(listening.sockets[0].getsockname()[1], tls(authority), once=True)
        assert isinstance(error, kind)
        assert "security.protocol to PLAINTEXT or SASL_PLAINTEXT" in str(error)
