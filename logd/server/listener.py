"""A listening socket: its connections, and the closing of idle and of slow ones."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from logd.api.dispatch.dispatch import serve
from logd.broker.work.periodic import PeriodicTasks, report
from logd.config.listeners import security_protocols
from logd.server.acceptor import Acceptor
from logd.server.connection import HELD_MAX, Connection
from logd.server.errors import CannotListen
from logd.server.output import FLUSH_AT

if TYPE_CHECKING:
    from logd.api.dispatch.dispatch import Serving
    from logd.broker.broker import Broker
    from logd.config.listeners import Endpoint
    from logd.security.listener_security import ListenerSecurity
    from logd.server.connection_quotas import ConnectionQuotas
    from logd.server.receive_buffers import ReceiveBuffers
    from logd.server.tls_reload import TlsReload

SWEEP_SECONDS_MAX = 10.0


class Listener:
    """Made by ``Server``; ``advertised`` is what clients that came in here are told."""

    def __init__(
        self, broker: Broker, bound: Endpoint, receive_buffers: ReceiveBuffers, quotas: ConnectionQuotas
    ) -> None:
        config = broker.config
        self.broker = broker
        self.receive_buffers = receive_buffers
        self.bound = bound
        self.advertised = bound
        self.security: ListenerSecurity | None = None
        self.loop = asyncio.get_running_loop()
        self.request_bytes_max = config.socket_request_max_bytes
        self.serve: Serving = serve
        self.copies = config.millstream_fetch_send == "copy"
        self._idle_seconds = config.connections_max_idle_ms / 1000
        self._connections: set[Connection] = set()
        self._quotas = quotas
        self._socket: socket.socket | None = None
        self._acceptor: Acceptor | None = None
        self._tls_reload: TlsReload | None = None
        self._rounds = PeriodicTasks()

    def bind(self) -> None:
        """Take the address; ``bound`` then carries the real port. Raises CannotListen, ConfigError."""
        config = self.broker.config
        protocol = security_protocols(config)[self.bound.listener]
        if protocol != "PLAINTEXT":
            from logd.server.secured import security_of
            from logd.server.tls_reload import TlsReload

            broker = self.broker
            if protocol.endswith("SSL"):
                self._tls_reload = TlsReload(self.bound.listener, lambda: broker.config.explicit)
            self.security = security_of(self.broker, self.bound.listener, protocol)
        try:
            sock = _bound_socket(self.bound)
        except OSError as error:
            raise CannotListen(self.bound, error) from error
        if config.socket_send_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
        if config.socket_receive_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        self.bound = self.bound._replace(port=sock.getsockname()[1])
        self._socket = sock

    def accept(self) -> None:
        """Accept connections, once ``advertised`` is known. CannotListen when another was faster."""
        assert self._socket is not None, "bind first"
        backlog = self.broker.config.socket_listen_backlog_size
        acceptor = Acceptor(
            self._socket, lambda: Connection(self), lambda: self._quotas.pause_s(self.bound.listener)
        )
        if self.security is not None:
            acceptor.tls = self.security.tls
        try:
            acceptor.start(backlog)
        except OSError as error:
            raise CannotListen(self.bound, error) from error
        self._acceptor = acceptor
        if self._tls_reload is not None:
            self._follow_certificates(self._tls_reload)
        interval = min(max(self._idle_seconds / 4, 0.05), SWEEP_SECONDS_MAX)
        self._rounds.every(interval * 1000, self._sweep)

    async def close(self) -> None:
        """Stop accepting and close every connection."""
        await self._rounds.stop()
        if self._acceptor is not None:
            await self._acceptor.close()
        elif self._socket is not None:
            self._socket.close()
        self.drop_connections()
        await asyncio.sleep(0)

    def drop_connections(self) -> None:
        """Close every connection; clients may come again."""
        for connection in tuple(self._connections):
            connection.close()

    def statistics(self) -> dict[str, int]:
        """Return the listener's queues and their bounds, by name.

        They count connections, those that wait for a response, and unacknowledged produce requests of all
        connections with the bound of one. `connections_blocked` are those whose clients do not read: bytes in
        memory that wait for them, the bound of one connection, and bytes not yet read from files.
        """
        unsent = [
            unsent_by_connection
            for each in self._connections
            if (unsent_by_connection := each.unsent()) is not None
        ]
        return {
            "connections": len(self._connections),
            "connections_max": self.broker.config.max_connections,
            "connections_waiting": sum(each.is_waiting for each in self._connections),
            "unacknowledged_requests": sum(each.unacknowledged for each in self._connections),
            "connection_unacknowledged_requests_max": HELD_MAX,
            "connections_blocked": len(unsent),
            "unsent_bytes": sum(unsent_by_connection["bytes"] for unsent_by_connection in unsent),
            "connection_unsent_bytes_max": FLUSH_AT,
            "unsent_file_bytes": sum(unsent_by_connection["file_bytes"] for unsent_by_connection in unsent),
        }

    def admit(self, connection: Connection) -> str | None:
        """Count a connection in. Return the reason to refuse it if there are too many, else None."""
        self._connections.add(connection)
        return self._quotas.admit(connection, self.bound.listener)

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        self._connections.discard(connection)
        self._quotas.forget(connection)

    def _follow_certificates(self, tls_reload: TlsReload) -> None:
        """Look for changed certificates periodically."""

        async def look() -> None:
            contexts = await tls_reload.changed()
            if contexts is None or self._acceptor is None:
                return
            self._acceptor.tls = contexts.server
            if (membership := self.broker.membership) is not None:
                membership.tls_changed(self.bound.listener, contexts.client)

        self._rounds.every(tls_reload.look_ms, look)

    async def _sweep(self) -> None:
        """Close idle connections, and those that do not finish a request; release spare buffers.

        Called periodically.
        """
        self.receive_buffers.trim()
        now = self.loop.time()
        for connection in tuple(self._connections):
            quiet = now - connection.last_active
            try:
                if 0 < self._idle_seconds < quiet:
                    connection.close_idle(quiet)
                else:
                    connection.close_if_late(now)
            except Exception as error:  # one that always fails must not end the others
                report(f"{connection.peer}: looking whether it is idle", error)


def _bound_socket(endpoint: Endpoint) -> socket.socket:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        sock.bind((endpoint.host, endpoint.port))
    except OSError:
        sock.close()
        raise
    return sock
