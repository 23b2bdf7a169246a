"""Connections that come while a server closes, or while no descriptor is left."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, Client
from logd.broker.broker import Broker
from logd.config.load import from_properties
from logd.server import acceptor
from logd.server.server import Server

SECONDS = 30.0


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Server, int]]:
    """Start a server on a port of its own, and yield both."""
    config = from_properties({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}).config
    broker = Broker(config)
    server = Server(broker)
    server.bind()
    await broker.start()
    server.accept()
    try:
        yield server, broker.endpoint.port
    finally:
        await server.close()
        await broker.stop()


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off: a collection would close sockets that the server forgets to close."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("turns", range(6))
async def test_who_comes_while_the_server_closes_is_told_so(tmp_path: Path, turns: int) -> None:
    """Their connections are accepted, and not yet anybody's, when `close` is called."""
    async with serving(tmp_path) as (server, port), asyncio.timeout(SECONDS):
        with without_garbage_collection(), socket.create_connection(("127.0.0.1", port)) as client:
            client.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.close()
            try:
                assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
            except ConnectionResetError:
                pass


class Exhausted:
    """A listening socket that cannot accept for want of descriptors, `times` times."""

    def __init__(self, listening: socket.socket, times: int) -> None:
        self._listening = listening
        self.times = times

    def accept(self) -> tuple[socket.socket, object]:
        if self.times:
            self.times -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()

    def __getattr__(self, name: str) -> object:
        return getattr(self._listening, name)


def test_who_comes_while_no_descriptor_is_left_is_let_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "AGAIN_S", 0.01)

    async def main() -> None:
        async with serving(tmp_path) as (server, port), asyncio.timeout(SECONDS):
            accepting = server._listeners[0]._acceptor
            assert accepting is not None
            exhausted = Exhausted(accepting._listening, 3)
            accepting._listening = exhausted  # type: ignore[assignment]
            async with Client(f"127.0.0.1:{port}") as client:
                await Admin(client).describe_cluster()
            assert exhausted.times == 0

    asyncio.run(main())
    assert "connections wait, none can be accepted: Too many open files" in caplog.text
