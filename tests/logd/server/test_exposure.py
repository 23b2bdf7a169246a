"""The warning about listeners that other machines reach without authentication."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest

from logd.broker_server import BrokerServer
from logd.config.listeners import Endpoint
from logd.config.load import from_properties
from logd.security.listener_security import ListenerSecurity
from logd.security.plain import PlainServerExchange
from logd.server.exposure import warn_of_exposure


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def tls(mode: ssl.VerifyMode) -> ListenerSecurity:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = mode
    return ListenerSecurity(tls=context)


SASL = ListenerSecurity(mechanisms={"PLAIN": lambda: PlainServerExchange({})})


@pytest.mark.parametrize(
    ("host", "security", "is_exposed"),
    [
        ("", None, True),
        ("0.0.0.0", None, True),
        ("10.0.0.1", None, True),
        ("broker.example", tls(ssl.CERT_OPTIONAL), True),
        ("0.0.0.0", tls(ssl.CERT_REQUIRED), False),
        ("0.0.0.0", SASL, False),
        ("127.0.0.1", None, False),
        ("localhost", None, False),
        ("::1", None, False),
    ],
)
def test_only_an_open_listener_without_authentication_is_named(
    host: str, security: ListenerSecurity | None, is_exposed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_exposure([(Endpoint("OUTSIDE", host, 9092), security), (Endpoint("IN", "127.0.0.1", 1), None)])
    assert len(warnings(caplog)) == is_exposed
    assert all(text.startswith(f"OUTSIDE://{host}:9092: no auth") for text in warnings(caplog))


async def test_a_broker_says_it_once_at_its_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    for host, count in (("127.0.0.1", 0), ("0.0.0.0", 1)):
        settings["listeners"] = f"PLAINTEXT://{host}:0"
        server = BrokerServer(from_properties(settings).config)
        await server.start()
        await server.stop()
        assert len(warnings(caplog)) == count, warnings(caplog)
