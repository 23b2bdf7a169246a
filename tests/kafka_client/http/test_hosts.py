"""Which names a server on a loopback address answers to."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kafka_client.http.address import is_loopback
from kafka_client.http.hosts import CheckedHosts


async def status(host: str | None, *names: str) -> int:
    """Return the status of a request with this Host header."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [] if host is None else [(b"host", host.encode())]
    await CheckedHosts(app, names)({"type": "http", "headers": headers}, None, send)  # type: ignore[arg-type]
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8083", "localhost", "LOCALHOST:80", "[::1]:8083", "10.1.2.3", None, socket.gethostname()],
)
async def test_names_of_this_machine(host: str | None) -> None:
    assert await status(host) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8083", "127.0.0.1.evil.example", "::1.evil"])
async def test_other_names_are_refused(host: str) -> None:
    assert await status(host) == 421
    assert await status(host, "evil.example", "127.0.0.1.evil.example") == (421 if "::" in host else 200)


def test_which_listeners_check() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "", "0.0.0.0", "10.0.0.1")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
