"""A connection to a broker: frames out, frames in, matched by correlation id.

The frames' content is up to `cluster` (any message), `producer` and `fetcher` (encoded by hand).

    frame = int32 length, then the message; a response begins with the int32 correlation id

A frame that fits the receive buffer is copied out of it. A larger one gets a buffer of its own, which the
caller then owns: fetched record batches are never copied again. The caller may return the buffer for reuse.
The announced length is not trusted: buffers grow with the bytes that arrive, and a length above
`max_response_bytes` closes the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import cast

from kafka_client.cluster.handshake import IS_TLS, is_tls, tls_error
from kafka_client.errors import (
    AuthenticationFailed,
    ConnectionClosed,
    MalformedMessage,
    MillstreamError,
    RequestTimedOut,
    TlsFailed,
)
from kafka_client.pacing import send_unpaced_within_host

RECEIVE_BUFFER = 65_536
TRUSTED_LENGTH = 1_048_576
"""A response up to this many bytes gets its whole buffer at once; above it the buffer doubles."""
SPARE_BYTES_MAX = 2_097_152
"""Most bytes of a returned buffer that is reused for the next large response."""

_LENGTH = struct.Struct(">i")
_NO_LINGER = struct.pack("ii", 1, 0)
"""`struct linger`: on, for 0 s."""

Frame = bytes | list[bytes | bytearray | memoryview]
FrameMaker = Callable[[int], Frame]
"""Returns a whole request frame, length included, with the given correlation id."""


class Connection(asyncio.BufferedProtocol):
    """A pipelined connection; responses may arrive in any order.

    `max_in_flight`: most unanswered requests; further ones wait in `send`. `versions`: API key → (first,
    last) version that the broker serves, set by the negotiation.
    """

    def __init__(self, *, name: str, max_response_bytes: int, max_in_flight: int) -> None:
        self.name = name
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.advice = ""
        """A hint for the error text if the broker closes the connection before its next response."""
        self._max_response_bytes = max_response_bytes
        self._max_in_flight = max_in_flight
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._correlation_ids = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[memoryview], asyncio.TimerHandle]] = {}
        self._paused = False
        self._is_on_hold = False
        self._idle: asyncio.Future[None] | None = None
        """The future of `hold`, which waits until every request is answered."""
        self._task: asyncio.Task[None] | None = None
        self._throttled_until = 0.0
        self._room: deque[asyncio.Future[None]] = deque()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._closed: MillstreamError | None = None
        self._small = bytearray(RECEIVE_BUFFER)
        self._filled = 0
        self._large: bytearray | None = None
        self._large_size = 0
        self._spare: bytearray | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        timeout: float,
        max_response_bytes: int,
        max_in_flight: int,
        tls: ssl.SSLContext | None = None,
    ) -> Connection:
        """Connect within `timeout` seconds, with TLS if `tls` is given.

        Raises ConnectionClosed if that fails, and TlsFailed if a retry would not help.
        """
        loop = asyncio.get_running_loop()
        name = f"{host}:{port}"

        def make() -> Connection:
            return cls(name=name, max_response_bytes=max_response_bytes, max_in_flight=max_in_flight)

        try:
            async with asyncio.timeout(timeout):
                transport, protocol = await loop.create_connection(
                    make, host, port, ssl=tls, server_hostname=host if tls is not None else None
                )
        except TimeoutError:
            raise ConnectionClosed(f"{name} did not accept a connection within {timeout:g} s") from None
        except OSError as error:
            if tls is not None and (refused := tls_error(error, name)) is not None:
                raise refused from None
            raise ConnectionClosed(f"cannot connect to {name}: {error}") from error
        if (connected := transport.get_extra_info("socket")) is not None:
            send_unpaced_within_host(connected)
        return protocol

    # --- asking ---

    @property
    def is_open(self) -> bool:
        """True while requests can be sent."""
        return self._closed is None

    @property
    def in_flight(self) -> int:
        """The number of unanswered requests."""
        return len(self._waiting)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for room."""
        return len(self._room)

    async def send(self, make_frame: FrameMaker, *, timeout: float) -> asyncio.Future[memoryview]:
        """Send one request, waiting only for room; the returned future gives the response after its length.

        The future fails with ConnectionClosed or RequestTimedOut. A request that times out closes the
        connection: the broker answers in order, so all later requests are stuck as well.
        """
        await self._wait_for_room()
        return self._send_now(make_frame, timeout)

    def _send_now(self, make_frame: FrameMaker, timeout: float) -> asyncio.Future[memoryview]:
        correlation_id = next(self._correlation_ids) & 0x7FFF_FFFF
        frame = make_frame(correlation_id)
        future: asyncio.Future[memoryview] = self._loop.create_future()
        timer = self._loop.call_later(timeout, self._time_out, correlation_id, timeout)
        self._waiting[correlation_id] = (future, timer)
        self._write(frame)
        return future

    async def send_only(self, make_frame: FrameMaker) -> None:
        """Send a request that has no response (Produce with acks=0)."""
        await self._wait_for_room()
        self._write(make_frame(next(self._correlation_ids) & 0x7FFF_FFFF))

    async def call(self, make_frame: FrameMaker, *, timeout: float) -> memoryview:
        """Send one request and wait for its response."""
        return await (await self.send(make_frame, timeout=timeout))

    def give_back(self, response: memoryview) -> None:
        """Return a response's buffer for reuse: the response and parts of it must not be used any more."""
        buffer = response.obj
        if isinstance(buffer, bytearray) and len(buffer) <= SPARE_BYTES_MAX:
            self._spare = buffer

    def throttle(self, milliseconds: int) -> None:
        """Let `send` wait this long, as the broker asked (KIP-219)."""
        self._throttled_until = max(self._throttled_until, self._loop.time() + milliseconds / 1000)

    async def hold(self) -> None:
        """Hold back further requests until `release`, and wait until all sent ones are answered."""
        self._is_on_hold = True
        if self._waiting:
            self._idle = self._loop.create_future()
            try:
                await self._idle
            finally:
                self._idle = None
        self._check_open()

    async def call_held(self, make_frame: FrameMaker, *, timeout: float) -> memoryview:
        """Send a request between `hold` and `release`, and wait for its response, while other requests are
        held back.
        """
        self._check_open()
        return await self._send_now(make_frame, timeout)

    def release(self) -> None:
        """Send the requests that `hold` held back."""
        self._is_on_hold = False
        self._wake(len(self._room))

    def accompany(self, task: asyncio.Task[None]) -> None:
        """Attach a task that works on this connection: it is cancelled when the connection ends."""
        self._task = task
        if self._closed is not None:
            task.cancel()

    def close(self, reason: str = "closed by this client") -> None:
        """Close the connection; unanswered requests fail with ConnectionClosed."""
        self.fail(ConnectionClosed(f"connection to {self.name}: {reason}"))

    def reset(self, reason: str) -> None:
        """Close the connection so that requests which the broker has not received never reach it; see
        `abort`.
        """
        self.abort(ConnectionClosed(f"connection to {self.name}: {reason}"))

    def abort(self, error: MillstreamError) -> None:
        """Fail all requests, and have the kernel drop unsent bytes: it sends the other side a RST.

        After a plain close the kernel keeps the bytes, and sends them again for up to 100 s (Linux). Then a
        request could be executed after its repetition by another connection.
        """
        if self._transport is not None and self._closed is None:
            with contextlib.suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER
                )
        self.fail(error)

    async def wait_closed(self) -> None:
        """Wait until the socket is closed, after `close` or `reset`."""
        await asyncio.shield(self._lost)
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _wait_for_room(self) -> None:
        while self._closed is None:
            if self._is_on_hold or self._paused or len(self._waiting) >= self._max_in_flight:
                await self._turn()
            elif (pause := self._throttled_until - self._loop.time()) > 0:
                await asyncio.sleep(pause)
            else:
                return
        self._check_open()

    async def _turn(self) -> None:
        """Wait until there may be room."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._room.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._wake(1)
            raise

    def _check_open(self) -> None:
        if isinstance(self._closed, AuthenticationFailed):
            raise type(self._closed)(*self._closed.args)
        if self._closed is not None:
            raise ConnectionClosed(*self._closed.args)

    def _write(self, frame: Frame) -> None:
        assert self._transport is not None
        if isinstance(frame, list):
            self._transport.writelines(frame)
        else:
            self._transport.write(frame)

    def _time_out(self, correlation_id: int, timeout: float) -> None:
        future, _ = self._waiting.pop(correlation_id)
        if not future.done():
            future.set_exception(RequestTimedOut(f"{self.name} did not answer within {timeout:g} s"))
        self.reset("a request timed out")

    # --- asyncio's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle asyncio's event: the socket is connected."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle asyncio's event: the socket is closed."""
        refused = tls_error(exc, self.name) if isinstance(exc, ssl.SSLError) else None
        text = f"connection to {self.name}: {exc or 'closed by the broker'}"
        self.fail(refused or ConnectionClosed(text + self.advice))
        if not self._lost.done():
            self._lost.set_result(None)

    def pause_writing(self) -> None:
        """Handle asyncio's event: the send buffer is full."""
        self._paused = True

    def resume_writing(self) -> None:
        """Handle asyncio's event: the send buffer has room again."""
        self._paused = False
        self._wake(self._max_in_flight)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes, for asyncio."""
        if self._large is not None:
            return memoryview(self._large)[self._filled : self._large_size]
        return memoryview(self._small)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Handle asyncio's event: ``nbytes`` bytes have arrived."""
        self._filled += nbytes
        if self._large is None:
            self._take_small()
        elif self._filled == self._large_size:
            frame = memoryview(self._large)[: self._large_size]
            self._large, self._filled = None, 0
            self._deliver(frame)
        elif self._filled == len(self._large):
            self._large = _grown(self._large, self._filled, min(2 * self._filled, self._large_size))

    # --- frames ---

    def _take_small(self) -> None:
        """Deliver the whole frames in the small buffer.

        A partial frame is kept, or moved to a buffer of its own.
        """
        buffer, pos, end = self._small, 0, self._filled
        while end - pos >= 4 and self._closed is None:
            (size,) = _LENGTH.unpack_from(buffer, pos)
            if self.advice and is_tls(buffer, pos):
                self.fail(TlsFailed(IS_TLS, broker=self.name))
                return
            if not 4 <= size <= self._max_response_bytes:
                self.abort(MalformedMessage(f"{self.name} announced a response of {size} bytes"))
                return
            after = pos + 4 + size
            if after > end:
                if size > RECEIVE_BUFFER - 4:
                    self._large_size = size
                    with memoryview(buffer) as view:
                        self._large = self._large_buffer(view[pos + 4 : end], size)
                    self._filled = end - pos - 4
                    return
                break
            self._deliver(memoryview(bytes(memoryview(buffer)[pos + 4 : after])))
            pos = after
        rest = end - pos
        if pos and rest:
            buffer[:rest] = bytes(memoryview(buffer)[pos:end])
        self._filled = rest

    def _large_buffer(self, part: memoryview, size: int) -> bytearray:
        """Return a buffer for a response of `size` bytes, with `part` written at its start.

        The spare buffer is used if it is large enough. A new one grows with the bytes that arrive.
        """
        if self._spare is None or len(self._spare) < size:
            return _grown(part, len(part), min(size, TRUSTED_LENGTH))
        spare, self._spare = self._spare, None
        spare[: len(part)] = part
        return spare

    def _deliver(self, frame: memoryview) -> None:
        (correlation_id,) = _LENGTH.unpack_from(frame)
        pending = self._waiting.pop(correlation_id, None)
        if pending is None:
            self.abort(
                MalformedMessage(f"{self.name} answered request {correlation_id}, which was not asked")
            )
            return
        future, timer = pending
        timer.cancel()
        self.advice = ""
        if not future.done():
            future.set_result(frame)
        if self._idle is not None and not self._waiting and not self._idle.done():
            self._idle.set_result(None)
        self._wake(1)

    def _wake(self, count: int) -> None:
        while count and self._room:
            turn = self._room.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1

    def fail(self, error: MillstreamError) -> None:
        """Close the connection; unanswered requests fail with `error`."""
        if self._closed is not None:
            return
        self._closed = error
        waiting, self._waiting = self._waiting, {}
        for future, timer in waiting.values():
            timer.cancel()
            if not future.done():
                future.set_exception(type(error)(*error.args))
        self._wake(len(self._room))
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()


def _grown(part: bytearray | memoryview, filled: int, capacity: int) -> bytearray:
    """Return a buffer of `capacity` bytes that starts with the first `filled` of `part`."""
    grown = bytearray(capacity)
    grown[:filled] = memoryview(part)[:filled]
    return grown
