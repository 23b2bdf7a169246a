"""Connections within one host are not paced, whatever congestion control the system comes with."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from kafka_client.cluster.connection import Connection
from kafka_client.pacing import send_unpaced_within_host
from logd.broker.broker import Broker
from logd.config.load import from_properties
from logd.server.connection import Connection as ServerConnection
from logd.server.server import Server

CONGESTION = getattr(socket, "TCP_CONGESTION", 13)
TIMEOUT_S = 30.0


class Recorded:
    """A connected socket: its addresses, and the congestion control it has."""

    def __init__(self, own: str, peer: str, control: bytes, refuses: bool = False) -> None:
        self.own, self.peer, self.control, self.refuses = own, peer, control, refuses

    def getsockname(self) -> tuple[str, int]:
        return self.own, 9092

    def getpeername(self) -> tuple[str, int]:
        return self.peer, 50_000

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        assert (level, optname) == (socket.IPPROTO_TCP, CONGESTION)
        return self.control.ljust(buflen, b"\0")

    def setsockopt(self, level: int, optname: int, value: bytes, /) -> None:
        assert (level, optname) == (socket.IPPROTO_TCP, CONGESTION)
        if self.refuses:
            raise PermissionError("not allowed")
        self.control = value


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux lets a socket choose")
@pytest.mark.parametrize(
    ("own", "peer", "control", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", b"bbr", b"reno"),
        ("10.0.0.5", "10.0.0.5", b"bbr3", b"reno"),
        ("::1", "::1", b"bbr", b"reno"),
        ("10.0.0.5", "10.0.0.6", b"bbr", b"bbr"),
        ("127.0.0.1", "127.0.0.1", b"cubic", b"cubic"),
    ],
)
def test_only_a_paced_connection_within_the_host_is_changed(
    own: str, peer: str, control: bytes, expected: bytes
) -> None:
    connected = Recorded(own, peer, control)
    send_unpaced_within_host(connected)
    assert connected.control == expected


def test_a_system_that_refuses_is_left_as_it_is() -> None:
    connected = Recorded("127.0.0.1", "127.0.0.1", b"bbr", refuses=True)
    send_unpaced_within_host(connected)
    assert connected.control == b"bbr"


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux lets a socket choose")
def test_neither_end_of_a_broker_s_connection_is_paced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls: list[bytes] = []

    def note(transport: asyncio.BaseTransport) -> None:
        connected = transport.get_extra_info("socket")
        controls.append(connected.getsockopt(socket.IPPROTO_TCP, CONGESTION, 16).rstrip(b"\0"))

    accepted = ServerConnection.connection_made

    def connection_made(self: ServerConnection, transport: asyncio.BaseTransport) -> None:
        note(transport)
        accepted(self, transport)

    monkeypatch.setattr(ServerConnection, "connection_made", connection_made)

    async def main() -> None:
        properties = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
        broker = Broker(from_properties(properties).config)
        server = Server(broker)
        server.bind()
        await broker.start()
        server.accept()
        connection = await Connection.open(
            "127.0.0.1", broker.endpoint.port, timeout=TIMEOUT_S, max_response_bytes=1, max_in_flight=1
        )
        assert connection._transport is not None
        note(connection._transport)
        connection.close()
        await connection.wait_closed()
        await server.close()
        await broker.stop()

    asyncio.run(main())
    assert len(controls) == 2
    assert not [control for control in controls if control.startswith(b"bbr")]
