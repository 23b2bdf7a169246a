"""kazoo's threads, with sockets from this module: kazoo accepts a handler for such changes.

They are made here because of five properties of kazoo alone:

- It does not report the session timeout that the server grants, nor when it asked. Without these nobody knows
  how long a session lives. `_Overheard` reads the bytes until the answer to Connect.
- It begins a new session on the same client when one has expired. A request for the old session might then
  be carried out in the new one. After `close_gate` no connection is made.
- It forgets decrypted bytes that were not read yet when it waits on TLS. Pipelined answers would be delayed
  until the next ping.
- It waits a whole session for a server that does not answer SYN, so that the session is over before the next
  server is tried.
- It creates and closes an epoll descriptor for each wait.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

GRANTED_AT = 8
"""An answer to Connect: its length (4 bytes), the protocol's version (4), the timeout granted in ms (4), …"""
_INT = struct.Struct(">i")


class Handler(SequentialThreadingHandler):
    """A handler of kazoo with its own sockets.

    `granted` is called each time a server answers Connect. It gets a time before the request was sent, and
    the session's timeout in ms, which is 0 if the session has expired.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None,
        connect_timeout_s: float,
        clock: Callable[[], float],
        granted: Callable[[float, int], None],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tls = tls
        self._connect_timeout_s = connect_timeout_s
        self._clock = clock
        self._granted = granted
        self._gate_is_closed = False
        self.last_error = ""
        """The reason why the last attempt to connect failed; empty if none has failed."""

    def close_gate(self) -> None:
        """Refuse to make further connections, because the session that they would serve is over."""
        self._gate_is_closed = True

    def create_connection(self, address: tuple[str, int], hostname: str = "", **_: object) -> _Overheard:
        """Return a connection to a server, with TLS if there is a context. Raises OSError."""
        if self._gate_is_closed:
            raise OSError("the session is over")
        try:
            connection = socket.create_connection(address, self._connect_timeout_s)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._wrapped(connection, hostname or address[0])
        except OSError as error:
            self.last_error = f"{address[0]}:{address[1]}: {error.strerror or error}"
            raise
        return _Overheard(connection, partial(self._granted, self._clock()))

    def _wrapped(self, connection: socket.socket, hostname: str) -> ssl.SSLSocket:
        assert self._tls is not None
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: object, timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Select as `select.select`, where a socket with bytes that TLS has decrypted counts as readable."""
        at_hand = [each for each in readers if isinstance(each, _Overheard) and each.pending()]
        poll = select.poll()
        for each in readers:
            poll.register(each, select.POLLIN)
        for each in writers:
            poll.register(each, select.POLLOUT)
        wait_ms = 0 if at_hand else None if timeout is None else math.ceil(timeout * 1000)
        events = dict(poll.poll(wait_ms))
        readable = [each for each in readers if each in at_hand or each.fileno() in events]
        return readable, [each for each in writers if each.fileno() in events], []


class _Overheard:
    """A connection that reports the session timeout in the first answer, before kazoo reads it."""

    def __init__(self, connection: socket.socket, granted: Callable[[int], None]) -> None:
        self._connection = connection
        self._granted = granted
        self._begin: bytearray | None = bytearray()
        self.fileno = connection.fileno
        self.send = connection.send
        self.setblocking = connection.setblocking
        self.close = connection.close

    def recv(self, length: int) -> bytes:
        """Return up to `length` bytes."""
        data = self._connection.recv(length)
        if self._begin is not None:
            self._begin += data
            if len(self._begin) >= GRANTED_AT + _INT.size:
                self._granted(_INT.unpack_from(self._begin, GRANTED_AT)[0])
                self._begin = None
        return data

    def pending(self) -> int:
        """Return how many bytes TLS has decrypted that were not read yet."""
        return self._connection.pending() if isinstance(self._connection, ssl.SSLSocket) else 0
