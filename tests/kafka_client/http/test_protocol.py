"""Clients that hold connections open: without a request, with half of one, or without reading the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kafka_client.http import protocol
from kafka_client.http.server import HttpServer
from tests.support.waiting import until

REQUEST = b"GET /quick HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = 64 * 1024 * 1024


async def quick(request: Request) -> Response:
    return PlainTextResponse("done")


async def body(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def large(request: Request) -> Response:
    return PlainTextResponse("x" * LARGE)


class Client:
    """A raw connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes = REQUEST) -> bytes:
        """Send bytes, and return the head of the answer."""
        self.writer.write(request)
        return await self.reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        """Return what comes until the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""


class Served:
    """A running server, and connections to it."""

    def __init__(self, server: HttpServer, stack: AsyncExitStack) -> None:
        self._server, self._stack = server, stack

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        self._stack.callback(writer.close)
        return Client(reader, writer)

    @property
    def connections(self) -> int:
        return len(self._server._server.server_state.connections)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    routes = [Route("/quick", quick), Route("/body", body, methods=["POST"]), Route("/large", large)]
    server = HttpServer(Starlette(routes=routes), "127.0.0.1:0")
    await server.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        yield Served(server, stack)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of connections that the server has at most."""
    monkeypatch.setattr(protocol, "CONNECTIONS_MAX", 8)
    monkeypatch.setattr("kafka_client.http.server.CONNECTIONS_MAX", 8)
    return 8


@pytest.mark.parametrize(
    "head", [b"", b"GET /qu", b"POST /body HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nabc"]
)
async def test_silent_connections_make_room_for_others(few: int, head: bytes) -> None:
    async with served() as server:
        silent = []
        for _ in range(5 * few):
            client = await server.connect()
            client.writer.write(head)
            silent.append(client)
            assert server.connections <= few
        working = await server.connect()
        assert (await working.ask()).startswith(b"HTTP/1.1 200")
        assert await silent[0].rest() == b""
        assert server.connections < few


async def test_a_head_that_does_not_end_is_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    async with served() as server:
        slow, working = await server.connect(), await server.connect()
        assert (await working.ask()).startswith(b"HTTP/1.1 200")

        async def drip() -> None:
            for byte in b"GET /quick HTTP/1.1\r\nx: " + b"y" * 100_000:
                slow.writer.write(bytes([byte]))
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await slow.rest() == b""
        dripping.cancel()
        await until(lambda: server.connections == 0)  # also the one whose answer was read


async def test_a_body_that_comes_after_the_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.1)
    async with served() as server:
        client = await server.connect()
        answer = await client.ask(
            b"POST /quick HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nabc"
        )
        assert answer.startswith(b"HTTP/1.1 405")
        client.writer.write(b"more")
        await until(lambda: server.connections == 0)


async def test_an_answer_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    async with served() as server:
        client = await server.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.writer.write(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await until(lambda: server.connections == 1)
        await until(lambda: server.connections == 0)


async def test_requests_of_one_connection_are_all_answered() -> None:
    async with served() as server:
        client = await server.connect()
        for _ in range(3):
            assert (await client.ask()).startswith(b"HTTP/1.1 200")
            assert await client.reader.readexactly(4) == b"done"
        client.writer.write(REQUEST * 20)
        for _ in range(20):
            await client.reader.readuntil(b"done")
        answer = await client.ask(b"POST /body HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc")
        assert answer.startswith(b"HTTP/1.1 200")
