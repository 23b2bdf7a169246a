"""Taking connections from a listening socket.

asyncio's own server, when it is closed, loses connections that it has accepted in the same turn: nobody
closes them, and their clients wait for an answer until the next garbage collection (CPython's issue 109564).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from kafka_client.pacing import send_unpaced_within_host

ACCEPTED_AT_ONCE = 100
"""Then other callbacks have their turn."""
HANDSHAKE_SECONDS_MAX = 10.0
"""How long a client may take for TLS's handshake."""
AGAIN_S = 1.0
"""After the system had no descriptor or no memory left."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"})
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger("logd.server")


class Acceptor:
    """From `start` until `close`, after which all connections have been made that were ever accepted.

    `factory` makes a connection's protocol. `pause_s` is called after each accepted connection and returns
    how long the next one has to wait, in seconds.
    """

    def __init__(
        self,
        listening: socket.socket,
        factory: Callable[[], asyncio.BaseProtocol],
        pause_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._factory = factory
        self._pause_s = pause_s
        self.tls: ssl.SSLContext | None = None
        """The context of connections with TLS."""
        self._taking: set[asyncio.Task[None]] = set()
        """Accepted, and on their way to a protocol."""
        self._again: asyncio.TimerHandle | None = None

    def start(self, backlog: int) -> None:
        """Have clients come. OSError when the address has been taken by another."""
        self._listening.listen(backlog)
        self._loop.add_reader(self._listening, self._accept)

    async def close(self) -> None:
        """Accept no more; what is in the system's queue is reset."""
        if self._listening.fileno() >= 0:
            self._rest()
            self._listening.close()
        if self._taking:
            await asyncio.wait(self._taking)

    def _rest(self) -> None:
        self._loop.remove_reader(self._listening)
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._accept_later(error)
                return
            accepted.setblocking(False)
            send_unpaced_within_host(accepted)
            task = self._loop.create_task(self._take(accepted))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)
            if (pause_s := self._pause_s()) > 0:
                self._accept_again(pause_s)
                return

    def _accept_later(self, error: OSError) -> None:
        """Stop accepting for `AGAIN_S` seconds: the socket stays readable while no connection can be
        accepted.
        """
        host, port, *_ = self._listening.getsockname()
        log.error(
            "%s:%d: connections wait, none can be accepted: %s (ulimit -n?)", host, port, error.strerror
        )
        self._accept_again(AGAIN_S)

    def _accept_again(self, seconds: float) -> None:
        """Accept no connection for some seconds."""
        self._rest()
        self._again = self._loop.call_later(seconds, self._loop.add_reader, self._listening, self._accept)

    async def _take(self, accepted: socket.socket) -> None:
        if self.tls is not None:
            await self._take_tls(accepted, self.tls)
            return
        try:
            await self._loop.connect_accepted_socket(self._factory, accepted)
        except Exception:
            accepted.close()
            log.exception("a connection could not be made")

    async def _take_tls(self, accepted: socket.socket, context: ssl.SSLContext) -> None:
        """Start TLS on a connection. A failed handshake is one line of the log."""
        host, port = _peer(accepted)
        try:
            await self._loop.connect_accepted_socket(
                self._factory, accepted, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
            )
        except OSError as error:  # ssl.SSLError, a lost connection, a timeout
            accepted.close()
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            if reason in _NO_TLS:
                reason = "the client speaks no TLS (security.protocol)"
            log.warning("%s:%s: TLS handshake failed: %s; connection closed", host, port, reason)
        except Exception:
            accepted.close()
            log.exception("a connection could not be made")


def _peer(accepted: socket.socket) -> tuple[str, int]:
    try:
        host, port, *_ = accepted.getpeername()
    except OSError:  # it is gone
        return "?", 0
    return host, port
