"""The connection of a client: bytes in, requests served in order, responses out.

A connection serves one request at a time. Produce, and Fetch if records are available, are answered inside
the data callback, without a task or a future. The responses to all requests that arrived together leave in
one send. Later requests stay in the receive buffer while a response is awaited or the client does not read.
Reading pauses when that buffer is full: a client costs its buffer and one response, however it behaves.

Only batches that are appended and wait to be acknowledged (a future) let later batches pass. At most
``HELD_MAX`` requests wait so; followers then copy together what a producer has in flight. Responses keep the
requests' order.

A connection receives into a window that it shares with all others. It has a buffer of its own only for
requests that are not served at once (`receive_buffer`). A larger request gets a lent buffer, in turn if these
are bounded (`receive_buffers`). The connection returns it as soon as the request is served.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

from logd.api.request.answer import NotYet, Refused
from logd.api.request.context import RequestContext
from logd.api.table import PRODUCE
from logd.broker.fetching.delayed import Delayed
from logd.server.output import FLUSH_AT, Output
from logd.server.receive_buffer import LENGTH, ReceiveBuffer
from logd.server.receive_buffers import READ_WINDOW
from logd.server.unfinished import FINISHED, is_late

if TYPE_CHECKING:
    from logd.api.dispatch.dispatch import Answered, Serving
    from logd.api.request.answer import Answer
    from logd.broker.broker import Broker
    from logd.config.listeners import Endpoint
    from logd.security.listener_security import ListenerSecurity
    from logd.server.output import Part
    from logd.server.receive_buffers import ReceiveBuffers
    from logd.server.sasl_gate import SaslGate
    from logd.server.tls_output import TlsOutput

HELD_MAX = 16
"""Most requests of a connection that wait to be acknowledged, or for those before them."""
_PRODUCE = PRODUCE.to_bytes(2, "big")

log = logging.getLogger("logd.server")


class ConnectionOwner(Protocol):
    """The listener, as a connection sees it.

    ``copies``: file slices are read and sent, without sendfile. ``serve`` is the function that serves
    requests, looked up whenever bytes have arrived.
    """

    broker: Broker
    advertised: Endpoint
    loop: asyncio.AbstractEventLoop
    request_bytes_max: int
    copies: bool
    receive_buffers: ReceiveBuffers
    serve: Serving
    security: ListenerSecurity | None

    def admit(self, connection: Connection) -> str | None:
        """Count a connection in. Return the reason to refuse it if there are too many, else None."""

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""


class Connection(asyncio.BufferedProtocol):
    """The protocol of one client's connection; see the module."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self._owner = owner
        self._loop = owner.loop
        self._request_bytes_max = owner.request_bytes_max
        self._received = ReceiveBuffer(owner.receive_buffers)
        self._answers: list[Part] = []
        self._with_files = False
        self._waiting: Delayed[Answer] | asyncio.Task[Answered] | None = None
        self._responses: deque[asyncio.Future[bytes] | Answer] = deque()
        """Acknowledgements that are waited for and the answers behind them, in the requests' order."""
        self._is_settling = False
        self._is_held_up = False
        """True if the next request waits for those."""
        self._closed = False
        self._reading = True
        self._transport: asyncio.Transport
        self._output: Output | TlsOutput
        self._gate: SaslGate | None = None
        """The login in front of the requests; None on a listener without SASL."""
        self._context: RequestContext
        self.peer = "?"
        self.host = "?"
        self.last_active = self._unfinished_since = self._loop.time()
        """When bytes came last, and when the request began to arrive that has not arrived in whole."""

    # The transport's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or close it at once when there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("?", 0)
        self.host, self.peer = address[0], f"{address[0]}:{address[1]}"
        owner = self._owner
        self._context = RequestContext(owner.broker, client_host=self.host, endpoint=owner.advertised)
        unnamed = None
        if owner.security is None:
            self._output = Output(
                self._loop, copy=owner.copies, drained=self._drained, failed=self._send_failed
            )
        else:
            unnamed = self._secure(owner.security)
        refusal = owner.admit(self) or unnamed
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
        for response in self._responses:
            if isinstance(response, asyncio.Future):
                response.cancel()
        self._responses.clear()
        # The output refers back to its connection: the buffer would live until the next garbage collection.
        self._received.close()
        self._output.close()
        if self._gate is not None:
            self._gate.close()
        self._owner.receive_buffers.dismiss(self)
        self._owner.forget(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next received bytes."""
        received = self._received
        return received.room() if received.filled else received.view

    def buffer_updated(self, nbytes: int) -> None:
        """Serve what has arrived."""
        received = self._received
        received.filled += nbytes
        self.last_active = self._loop.time()
        if self._waiting is None and not self._output.is_blocked:
            self._serve_all()
        if received.filled:
            if self._unfinished_since == FINISHED:
                self._unfinished_since = self.last_active
            may_receive = received.filled < len(received.buffer) or self._may_receive()
            received.keep(may_receive)
            if not may_receive:
                self._pause()

    def eof_received(self) -> bool | None:
        """Close the connection: the client has closed its side and waits for no response."""
        return False

    @property
    def is_waiting(self) -> bool:
        """True if a request of the client awaits its response."""
        return self._waiting is not None or bool(self._responses)

    @property
    def unacknowledged(self) -> int:
        """The number of requests that wait to be acknowledged, or wait for earlier ones."""
        return len(self._responses)

    def unsent(self) -> dict[str, int] | None:
        """Return `Output.statistics` of the responses that the client has not read, or None."""
        return self._output.statistics() if self._output.is_blocked else None

    # Security

    def _secure(self, security: ListenerSecurity) -> str | None:
        """Send through TLS, and have the peer log in, as the listener asks.

        Return why the peer is refused if its certificate's name cannot be used, else None.
        """
        from logd.server.secured import gate_of, output_of, principal_of

        self._output = output_of(
            security,
            self._loop,
            self._transport,
            copies=self._owner.copies,
            drained=self._drained,
            failed=self._send_failed,
        )
        self._gate = gate_of(security, self, self._loop, self._owner.broker.config)
        try:
            principal = principal_of(security, self._transport)
        except ValueError as error:
            return str(error)
        if principal is not None:
            self._context.principal = principal
        return None

    def set_request_bytes_max(self, size: int | None) -> None:
        """Set the largest size of a request, in bytes. None sets it to the listener's own limit."""
        largest = self._owner.request_bytes_max
        self._request_bytes_max = largest if size is None else min(size, largest)

    def pause_writing(self) -> None:
        """Send no more for now; only a transport with TLS calls this."""
        cast("TlsOutput", self._output).pause()

    def resume_writing(self) -> None:
        """Go on sending; only a transport with TLS calls this."""
        cast("TlsOutput", self._output).resume()

    def finish(self) -> None:
        """Close the connection after what has been sent."""
        if not self._closed:
            self._closed = True
            self._transport.close()

    # Receiving

    def _may_receive(self) -> bool:
        """Return True if more may be read into a full buffer.

        Nothing is read after a request that waits. A request larger than the connection's own buffer is read
        in its turn only (``queued.max.request.bytes``).
        """
        if self._waiting is not None or self._is_held_up or self._output.is_blocked or self._closed:
            return False
        received = self._received
        size = len(received.buffer)
        if received.filled - received.start < size or 2 * size <= READ_WINDOW:
            return True
        return self._owner.receive_buffers.admit(self, received.announced(), self._resume)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reading and not self._closed:
            self._reading = True
            if self._unfinished_since != FINISHED:
                self._unfinished_since = self._loop.time()
            self._transport.resume_reading()

    # Requests

    def _serve_all(self) -> None:
        """Serve whole requests until one has to wait, the client does not read, or no whole one is left."""
        received = self._received
        buffer, start, filled = received.buffer, received.start, received.filled
        serve, responses = self._owner.serve, self._responses
        if self._gate is not None:
            serve = self._gate.over(serve)
        self._is_held_up = False
        gathered = 0
        while filled - start >= 4:
            size = LENGTH.unpack_from(buffer, start)[0]
            if not 0 <= size <= self._request_bytes_max:
                self._flush()
                self._offend(self._bad_size(size))
                return
            end = start + 4 + size
            if end > filled:
                break
            if responses and (len(responses) >= HELD_MAX or buffer[start + 4 : start + 6] != _PRODUCE):
                self._is_held_up = True
                break
            try:
                answer = serve(received.view, start + 4, end, self._context)
            except Refused as refusal:
                self._flush()
                self._offend(str(refusal), logging.INFO if isinstance(refusal, NotYet) else logging.WARNING)
                return
            except Exception as error:
                self._flush()
                self._request_failed(error)
                return
            start = end
            if answer is None:
                continue
            if isinstance(answer, asyncio.Future):
                responses.append(answer)
                answer.add_done_callback(self._acknowledged)
            elif responses and isinstance(answer, bytes | list):
                responses.append(answer)
            elif isinstance(answer, bytes):
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
        if start > received.start:
            self._unfinished_since = FINISHED
        if received.served(start):
            self._owner.receive_buffers.dismiss(self)
        self._flush()

    def _bad_size(self, size: int) -> str:
        allowed = self._request_bytes_max
        return f"announced a request of {size} bytes; socket.request.max.bytes allows 0 to {allowed}"

    def _wait_for(self, answer: Delayed[Answer] | Coroutine[Any, Any, Answered]) -> None:
        if isinstance(answer, Delayed):
            self._waiting = answer
            answer.start(self._answered, self._request_failed)
        else:
            task = self._loop.create_task(answer)
            self._waiting = task
            task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Answered]) -> None:
        if self._closed:
            return
        if task.cancelled():  # from inside: what it waited for was given up, and nobody else will answer
            self._waiting = None
            self._close()
            return
        error = task.exception()
        if error is None:
            self._answered(task.result())
        elif isinstance(error, Refused):
            self._offend(str(error))
        else:
            self._request_failed(error)

    def _request_failed(self, error: BaseException) -> None:
        """Log an unexpected exception of a request, and close the connection: the client asks again."""
        self._waiting = None
        log.error("%s: request failed", self.peer, exc_info=error)
        self._close()

    def _answered(self, answer: Answered) -> None:
        """Send the response that was waited for, and go on with what has arrived meanwhile.

        A future of the response does not hold up the next requests.
        """
        self._waiting = None
        if self._closed:
            return
        if isinstance(answer, asyncio.Future):
            self._responses.append(answer)
            answer.add_done_callback(self._acknowledged)
        elif answer is not None and self._responses:
            self._responses.append(answer)
        elif answer is not None:
            self._gather(answer)
            self._flush()
        self._go_on()

    def _acknowledged(self, answer: asyncio.Future[bytes]) -> None:
        """Send the acknowledgement at the end of the turn, with others of the same turn."""
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        """Send the responses that are ready, up to the first that is not, and go on."""
        self._is_settling = False
        responses = self._responses
        while responses and not self._closed:
            first = responses[0]
            if isinstance(first, asyncio.Future):
                if not first.done():
                    break
                if first.cancelled():  # from inside, as in `_task_done`
                    self._close()
                    return
                if (error := first.exception()) is not None:
                    self._request_failed(error)
                    return
                first = first.result()
            responses.popleft()
            self._gather(first)
        self._flush()
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting is None and not self._output.is_blocked and not self._closed:
            self._serve_all()
            if self._may_receive():
                self._resume()
            elif self._received.filled == len(self._received.buffer):
                self._pause()

    # Answers

    def _gather(self, answer: Answer) -> None:
        if isinstance(answer, bytes):
            self._answers.append(answer)
        else:
            self._answers += answer
            self._with_files = True

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
        """Close the connection; log the error unless the client has disconnected."""
        if not isinstance(error, ConnectionError):
            log.warning("%s: sending failed: %s", self.peer, error)
        self._close()

    # The end

    def _offend(self, what: str, level: int = logging.WARNING) -> None:
        log.log(level, "%s: %s; connection closed", self.peer, what)
        self._close()

    def close_idle(self, idle_seconds: float) -> None:
        """Close a connection that has been idle for `idle_seconds`."""
        reason = "the client does not read" if self._output.is_blocked else "idle"
        log.info("%s: %s for %.0f s; connection closed", self.peer, reason, idle_seconds)
        self._close()

    def close_if_late(self, now: float) -> None:
        """Close the connection if its client has had its time to send a whole request.

        The time does not count while the connection itself does not read, or serves an earlier request.
        """
        if self.is_waiting or self._output.is_blocked or not self._reading or self._closed:
            return
        received = self._received
        announced = received.announced() if received.filled - received.start >= LENGTH.size else 0
        if is_late(self._unfinished_since, now, announced):
            self._offend(f"no whole request within {now - self._unfinished_since:.0f} s", logging.INFO)

    def give_way(self) -> None:
        """Close the connection, since max.connections is reached and a broker connects."""
        self._offend("max.connections is reached, and a broker connects", logging.INFO)

    def close(self) -> None:
        """Close the connection because the broker stops."""
        self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._transport.abort()
