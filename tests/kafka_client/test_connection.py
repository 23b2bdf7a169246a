from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from kafka_client.cluster.connection import RECEIVE_BUFFER, TRUSTED_LENGTH, Connection
from kafka_client.errors import ConnectionClosed, MalformedMessage, MillstreamError, RequestTimedOut
from tests.support.waiting import until

MAX_RESPONSE = 8 * 1024 * 1024


class Peer:
    """The other end of one connection: reads frames, writes whatever the test likes."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Peer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        if self.writer is not None:
            self.writer.transport.abort()
        await until(lambda: self.writer is None)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                self.requests.append(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
            self.writer = None

    async def connect(self, **settings: Any) -> Connection:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        options = {"timeout": 60, "max_response_bytes": MAX_RESPONSE, "max_in_flight": 10, **settings}
        connection = await Connection.open("127.0.0.1", port, **options)
        await until(lambda: self.writer is not None)
        return connection

    async def correlation_ids(self, count: int) -> list[int]:
        """Correlation ids of the first `count` requests."""
        await until(lambda: len(self.requests) >= count)
        return [int.from_bytes(request[:4], "big") for request in self.requests[:count]]

    def answer(self, correlation_id: int, body: bytes) -> None:
        assert self.writer is not None
        payload = correlation_id.to_bytes(4, "big") + body
        self.writer.write(len(payload).to_bytes(4, "big") + payload)


def frame(correlation_id: int) -> bytes:
    return b"\0\0\0\4" + correlation_id.to_bytes(4, "big")


def ask(connection: Connection, timeout: float = 60) -> asyncio.Task[memoryview]:
    return asyncio.create_task(connection.call(frame, timeout=timeout))


async def test_answers_out_of_order_find_their_questions() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        calls = [ask(connection) for _ in range(3)]
        first, second, third = await peer.correlation_ids(3)
        for correlation_id, body in ((third, b"three"), (first, b"one"), (second, b"two")):
            peer.answer(correlation_id, body)
        assert [bytes((await call)[4:]) for call in calls] == [b"one", b"two", b"three"]
        connection.close()
        await connection.wait_closed()


@pytest.mark.parametrize(
    "size", [0, 1, RECEIVE_BUFFER - 9, RECEIVE_BUFFER - 8, RECEIVE_BUFFER, TRUSTED_LENGTH + 1, 5_000_000]
)
async def test_answers_of_any_size_arrive_whole(size: int) -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        body = os.urandom(size)
        calls = [ask(connection) for _ in range(3)]
        for correlation_id, sent in zip(await peer.correlation_ids(3), (b"a", body, b"b"), strict=True):
            peer.answer(correlation_id, sent)
        assert [bytes((await call)[4:]) for call in calls] == [b"a", body, b"b"]
        connection.close()
        await connection.wait_closed()


async def test_a_connection_cut_in_the_middle_of_an_answer_fails_all_requests() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        calls = [ask(connection) for _ in range(2)]
        (first, _) = await peer.correlation_ids(2)
        assert peer.writer is not None
        peer.writer.write((1000).to_bytes(4, "big") + first.to_bytes(4, "big") + b"half of it")
        await peer.writer.drain()
        peer.writer.close()
        for call in calls:
            with pytest.raises(ConnectionClosed):
                await call
        assert not connection.is_open
        with pytest.raises(ConnectionClosed):
            await connection.call(frame, timeout=1)


@pytest.mark.parametrize("length", [MAX_RESPONSE + 1, 0x7FFF_FFFF, -1, 3])
async def test_a_lying_length_ends_the_connection(length: int) -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        call = ask(connection)
        await peer.correlation_ids(1)
        assert peer.writer is not None
        peer.writer.write(length.to_bytes(4, "big", signed=True))
        with pytest.raises(MalformedMessage):
            await call
        assert not connection.is_open


async def test_an_announced_length_is_not_allocated_before_it_arrives() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        call = ask(connection)
        (first,) = await peer.correlation_ids(1)
        assert peer.writer is not None
        peer.writer.write(MAX_RESPONSE.to_bytes(4, "big") + first.to_bytes(4, "big"))
        await until(lambda: connection._large is not None)
        assert connection._large is not None
        assert len(connection._large) <= TRUSTED_LENGTH
        connection.close()
        with pytest.raises(ConnectionClosed):
            await call
        await connection.wait_closed()


async def test_what_is_given_back_takes_the_next_large_answer() -> None:
    """Also one with others behind it, which come while it is not whole."""
    async with Peer() as peer:
        connection = await peer.connect()
        requests = 0
        arrays: list[object] = []
        for size in (TRUSTED_LENGTH // 2, 100_000, TRUSTED_LENGTH // 2, 5, 700_000, 5_000_000, 100_000):
            bodies = os.urandom(size), b"small", os.urandom(100_000)
            calls = [ask(connection) for _ in bodies]
            requests += len(bodies)
            for correlation_id, body in zip((await peer.correlation_ids(requests))[-3:], bodies, strict=True):
                peer.answer(correlation_id, body)
            answers = [await call for call in calls]
            assert [bytes(answer[4:]) for answer in answers] == list(bodies)
            arrays.append(answers[0].obj)
            connection.give_back(answers[0])
        assert arrays[1] is arrays[0] and arrays[2] is arrays[0], "100,000 bytes went where 500,000 had been"
        assert arrays[4] is not arrays[0], "it was too small"
        assert isinstance(arrays[5], bytearray) and connection._spare is arrays[6] is not arrays[5], (
            "too large"
        )
        connection.close()
        await connection.wait_closed()


async def test_an_answer_nobody_asked_for_ends_the_connection() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        call = ask(connection)
        (first,) = await peer.correlation_ids(1)
        peer.answer(first + 1000, b"")
        with pytest.raises(MalformedMessage):
            await call


async def test_a_request_that_times_out_takes_the_connection_with_it() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        calls = [ask(connection, timeout=0.05), ask(connection)]
        with pytest.raises(RequestTimedOut):
            await calls[0]
        with pytest.raises(ConnectionClosed):
            await calls[1]


@pytest.mark.parametrize(("end", "arrives"), [("reset", False), ("times out", False), ("close", True)])
async def test_what_is_given_up_does_not_arrive_later(end: str, arrives: bool) -> None:
    """Otherwise the kernel resends for 100 s, and a broker runs the request after a newer connection's."""
    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
            ended.set_result(True)
        except ConnectionResetError:
            ended.set_result(False)
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await Connection.open(
            "127.0.0.1", port, timeout=60, max_response_bytes=MAX_RESPONSE, max_in_flight=10
        )
        call = ask(connection, timeout=0.05 if end == "times out" else 60)
        await asyncio.sleep(0)
        if end == "reset":
            connection.reset("given up")
        elif end == "close":
            connection.close()
        with pytest.raises((ConnectionClosed, RequestTimedOut)):
            await call
        assert await ended is arrives


async def test_the_answer_to_a_cancelled_request_is_dropped() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        given_up, second_answer = ask(connection), ask(connection)
        first, second = await peer.correlation_ids(2)
        given_up.cancel()
        peer.answer(first, b"late")
        peer.answer(second, b"wanted")
        assert bytes((await second_answer)[4:]) == b"wanted"
        assert connection.is_open
        connection.close()
        await connection.wait_closed()


async def test_requests_beyond_the_bound_wait_for_an_answer() -> None:
    async with Peer() as peer:
        connection = await peer.connect(max_in_flight=2)
        calls = [ask(connection) for _ in range(4)]
        await peer.correlation_ids(2)
        assert connection.in_flight == 2
        assert len(peer.requests) == 2
        answered = 0
        while answered < 4:
            for correlation_id in (await peer.correlation_ids(answered + 1))[answered:]:
                peer.answer(correlation_id, b"")
                answered += 1
                await until(lambda: connection.in_flight <= 2)
        await asyncio.gather(*calls)
        connection.close()
        await connection.wait_closed()


async def test_a_waiting_request_that_is_cancelled_leaves_its_turn_to_the_next() -> None:
    async with Peer() as peer:
        connection = await peer.connect(max_in_flight=1)
        calls = [ask(connection) for _ in range(3)]
        (first,) = await peer.correlation_ids(1)
        await asyncio.sleep(0)
        calls[1].cancel()
        peer.answer(first, b"")
        await calls[0]
        peer.answer((await peer.correlation_ids(2))[1], b"third")
        assert bytes((await calls[2])[4:]) == b"third"
        connection.close()
        await connection.wait_closed()


async def test_a_throttled_connection_holds_requests_back() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        connection.throttle(3_600_000)
        request = ask(connection)
        for _ in range(5):
            await asyncio.sleep(0)
        assert connection.in_flight == 0
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        connection.close()
        await connection.wait_closed()


async def test_what_was_held_back_is_sent_in_the_end() -> None:
    async with Peer() as peer:
        connection = await peer.connect()
        connection.throttle(20)
        call = ask(connection)
        peer.answer((await peer.correlation_ids(1))[0], b"")
        await call
        connection.close()
        await connection.wait_closed()


async def test_no_listener_is_an_error_of_ours() -> None:
    async with Peer() as peer:
        assert peer._server is not None
        port = peer._server.sockets[0].getsockname()[1]
        peer._server.close()
        with pytest.raises(MillstreamError, match=f"127.0.0.1:{port}"):
            await Connection.open(
                "127.0.0.1", port, timeout=60, max_response_bytes=MAX_RESPONSE, max_in_flight=1
            )
