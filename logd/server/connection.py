"""One client's connection: bytes in, requests served in order, answers out.

A connection serves one request at a time. Produce, and Fetch where records are at hand, are answered inside
the data callback, without a task or a future; the answers to all requests that arrived together leave in one
send. While an answer is being waited for, or the client does not read, later requests stay in the receive
buffer, and reading pauses when that is full: a client costs its buffer and one answer, however it behaves.

A connection has a small buffer of its own. For a larger request it is lent one (`receive_buffers`), at its
turn where these are bounded, and gives it back as soon as that is served.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import struct
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

from logd.api.answer import Answer, Refused
from logd.api.context import RequestContext
from logd.api.dispatch import serve
from logd.broker.delayed import Delayed
from logd.server.output import FLUSH_AT, Output, Part
from logd.server.receive_buffers import ReceiveBuffers

if TYPE_CHECKING:
    from logd.broker.broker import Broker
    from logd.config.listeners import Endpoint

BUFFER_BYTES = 16 * 1024
"""Size of a new or an idle connection's receive buffer; it doubles as bytes arrive that do not fit."""
READ_WINDOW = 64 * 1024
"""A request larger than this is read to its end and not beyond, so that nothing has to be moved after. It is
also the most that a connection has for itself.
"""

_LENGTH = struct.Struct(">i")

log = logging.getLogger("logd.server")


class ConnectionOwner(Protocol):
    """The listener, as a connection sees it. ``copies``: file slices are read and sent, without sendfile."""

    broker: Broker
    advertised: Endpoint
    loop: asyncio.AbstractEventLoop
    request_bytes_max: int
    copies: bool
    receive_buffers: ReceiveBuffers

    def admit(self, connection: Connection) -> str | None:
        """Count a connection in; what is wrong with it when there are too many."""

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""


class Connection(asyncio.BufferedProtocol):
    """Receive buffer, own or lent: ``_buffer[_start:_filled]`` has arrived and is not served yet."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self._loop = owner.loop
        self._request_bytes_max = owner.request_bytes_max
        self._own = bytearray(BUFFER_BYTES)
        self._buffer: bytearray | mmap.mmap = self._own
        self._view = memoryview(self._buffer)
        self._start = 0
        self._filled = 0
        self._answers: list[Part] = []
        self._with_files = False
        self._waiting: Delayed[Answer] | asyncio.Task[Answer | None] | None = None
        self._closed = False
        self._reading = True
        self._transport: asyncio.Transport
        self._output: Output
        self._context: RequestContext
        self.peer = "?"
        self.host = "?"
        self.last_active = self._loop.time()

    # The transport's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or close it at once when there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("?", 0)
        self.host, self.peer = address[0], f"{address[0]}:{address[1]}"
        owner = self._owner
        self._context = RequestContext(owner.broker, client_host=self.host, endpoint=owner.advertised)
        self._output = Output(self._loop, copy=owner.copies, drained=self._drained, failed=self._send_failed)
        refusal = owner.admit(self)
        try:
            self._output.open(transport.get_extra_info("socket").fileno())
        except OSError as error:
            refusal = f"no descriptor left: {error.strerror}"
        if refusal is not None:
            self._offend(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was under way."""
        self._closed = True
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        # The output refers back to its connection: the buffer would live until the next garbage collection.
        self._start = self._filled = 0
        self._own = bytearray()
        self._replace_buffer(self._own)
        self._output.close()
        self._owner.receive_buffers.dismiss(self)
        self._owner.forget(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room for more bytes; doubled when there is none, whatever length a request announces."""
        start, filled = self._start, self._filled
        if filled == 0:
            return self._view
        size = self._announced() if filled - start >= 4 else 0
        if start > 0 and (start + size > len(self._buffer) or filled == len(self._buffer)):
            self._move_to_front()
        if self._filled == len(self._buffer):
            self._grow()
        start, filled = self._start, self._filled
        if size > READ_WINDOW and filled < start + size <= len(self._buffer):
            return self._view[filled : start + size]
        return self._view[filled:]

    def buffer_updated(self, nbytes: int) -> None:
        """Serve what has arrived."""
        self._filled += nbytes
        self.last_active = self._loop.time()
        if self._waiting is None and not self._output.is_blocked:
            self._serve_all()
        if self._filled == len(self._buffer) and not self._may_receive():
            self._pause()

    def eof_received(self) -> bool | None:
        """The client sends no more: nobody waits for answers either, so close."""
        return False

    # Receive buffer

    def _move_to_front(self) -> None:
        size = self._filled - self._start
        self._view[:size] = self._view[self._start : self._filled]
        self._start, self._filled = 0, size

    def _grow(self) -> None:
        size = 2 * len(self._buffer)
        if size <= READ_WINDOW:
            self._own = bytearray(size)
            self._replace_buffer(self._own)
        else:
            self._replace_buffer(self._owner.receive_buffers.lend(size, self._announced()))

    def _announced(self) -> int:
        """What the request at the front says it takes, its length included."""
        size: int = _LENGTH.unpack_from(self._buffer, self._start)[0]
        return size + 4

    def _replace_buffer(self, buffer: bytearray | mmap.mmap) -> None:
        view, left = memoryview(buffer), self._filled - self._start
        view[:left] = self._view[self._start : self._filled]
        before, self._buffer, self._view = self._buffer, buffer, view
        self._start, self._filled = 0, left
        if isinstance(before, mmap.mmap):
            self._owner.receive_buffers.give_back(before, outgrown=len(before) < len(buffer))

    def _give_back(self) -> None:
        """Go on in the connection's own buffer if what is left, and the request it begins, has room there."""
        left = self._filled - self._start
        if max(left, self._announced() if left >= 4 else 0) <= len(self._own):
            self._replace_buffer(self._own)
            self._owner.receive_buffers.dismiss(self)

    def shrink(self) -> None:
        """Have no more than a new connection; called when the connection has been quiet."""
        if self._buffer is self._own and len(self._own) > BUFFER_BYTES and self._filled == 0:
            self._own = bytearray(BUFFER_BYTES)
            self._replace_buffer(self._own)

    def _may_receive(self) -> bool:
        """Whether more may be read into a full buffer: not behind a request that waits, and what is larger
        than a connection's own buffer only at its turn (``queued.max.request.bytes``).
        """
        if self._waiting is not None or self._output.is_blocked or self._closed:
            return False
        size = len(self._buffer)
        if self._filled - self._start < size or 2 * size <= READ_WINDOW:
            return True
        return self._owner.receive_buffers.admit(self, self._announced(), self._resume)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reading and not self._closed:
            self._reading = True
            self._transport.resume_reading()

    # Requests

    def _serve_all(self) -> None:
        """Serve whole requests until one has to wait, the client does not read, or no whole one is left."""
        buffer, start, filled = self._buffer, self._start, self._filled
        gathered, begun = 0, start
        while filled - start >= 4:
            size = _LENGTH.unpack_from(buffer, start)[0]
            if not 0 <= size <= self._request_bytes_max:
                self._flush()
                self._offend(self._bad_size(size))
                return
            end = start + 4 + size
            if end > filled:
                break
            try:
                answer = serve(self._view, start + 4, end, self._context)
            except Refused as refusal:
                self._flush()
                self._offend(str(refusal))
                return
            except Exception as error:
                self._flush()
                self._request_failed(error)
                return
            start = end
            if answer is None:
                continue
            if isinstance(answer, bytes):
                self._answers.append(answer)
                gathered += len(answer)
            elif isinstance(answer, list):
                self._answers += answer
                self._with_files = True
                gathered = FLUSH_AT
            else:
                self._wait_for(answer)
                break
            if gathered >= FLUSH_AT:
                gathered = 0
                self._flush()
                if self._output.is_blocked or self._closed:
                    break
        is_lent = buffer is not self._own and start > begun
        if start == filled:
            start = self._filled = 0
        self._start = start
        if is_lent:
            self._give_back()
        self._flush()

    def _bad_size(self, size: int) -> str:
        allowed = self._request_bytes_max
        return f"announced a request of {size} bytes; socket.request.max.bytes allows 0 to {allowed}"

    def _wait_for(self, answer: Delayed[Answer] | Coroutine[Any, Any, Answer | None]) -> None:
        if isinstance(answer, Delayed):
            self._waiting = answer
            answer.start(self._answered, self._request_failed)
        else:
            task = self._loop.create_task(answer)
            self._waiting = task
            task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Answer | None]) -> None:
        if task.cancelled() or self._closed:
            return
        error = task.exception()
        if error is None:
            self._answered(task.result())
        elif isinstance(error, Refused):
            self._offend(str(error))
        else:
            self._request_failed(error)

    def _request_failed(self, error: BaseException) -> None:
        """A request ended in an exception nobody expected: its client has to ask again."""
        self._waiting = None
        log.error("%s: request failed", self.peer, exc_info=error)
        self._close()

    def _answered(self, answer: Answer | None) -> None:
        """What was waited for is there: send it and go on with what has arrived meanwhile."""
        self._waiting = None
        if self._closed:
            return
        if answer is not None:
            self._with_files = not isinstance(answer, bytes)
            self._answers += [answer] if isinstance(answer, bytes) else answer
            self._flush()
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting is None and not self._output.is_blocked and not self._closed:
            self._serve_all()
            if self._may_receive():
                self._resume()
            elif self._filled == len(self._buffer):
                self._pause()

    # Answers

    def _flush(self) -> None:
        """Send the gathered answers; reading pauses only once the receive buffer is full as well."""
        answers = self._answers
        if not answers or self._closed:
            return
        with_files = self._with_files
        self._answers, self._with_files = [], False
        try:
            if with_files:
                self._output.send(answers)
            else:
                self._output.send_bytes(b"".join(cast(list[bytes], answers)))
        except OSError as error:
            self._send_failed(error)

    def _drained(self) -> None:
        self.last_active = self._loop.time()
        self._go_on()

    def _send_failed(self, error: OSError) -> None:
        """The client went away, which is its right; anything else is worth a line."""
        if not isinstance(error, ConnectionError):
            log.warning("%s: sending failed: %s", self.peer, error)
        self._close()

    # The end

    def _offend(self, what: str) -> None:
        log.warning("%s: %s; connection closed", self.peer, what)
        self._close()

    def close_idle(self, idle_seconds: float) -> None:
        """Close a connection nothing was read from or written to for so long."""
        reason = "the client does not read" if self._output.is_blocked else "idle"
        log.info("%s: %s for %.0f s; connection closed", self.peer, reason, idle_seconds)
        self._close()

    def close(self) -> None:
        """Close the connection because the broker stops."""
        self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._transport.abort()
