"""A server of an ASGI application in the running event loop, on a listener given as host:port.

uvicorn changes neither the signal handlers nor the logging nor the event loop of the process.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import uvicorn

from kafka_client.errors import MillstreamError
from kafka_client.http.address import is_loopback
from kafka_client.http.hosts import CheckedHosts
from kafka_client.http.protocol import CONNECTIONS_MAX, BoundedProtocol

SHUTDOWN_SECONDS = 3
"""Seconds that running requests have to end when the server closes."""


class HttpServer:
    """An HTTP server on ``listener``, which is host:port; port 0 means any free port. ``tls`` makes it HTTPS.

    If `CONNECTIONS_MAX` requests run, a further one gets the status 503. On a loopback address, requests to
    unknown names are refused (`hosts`). Call `start`, then `close`.
    """

    def __init__(self, app: Any, listener: str, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = listener.rpartition(":")
        self.host = host.removeprefix("[").removesuffix("]")
        self.port = int(port)
        """The port; after `bind` the one that the server listens on."""
        config = uvicorn.Config(
            CheckedHosts(app, (self.host.lower(),)) if is_loopback(self.host) else app,
            http=BoundedProtocol,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        config.load()
        config.ssl = tls
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._socket: socket.socket | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """The host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def bind(self) -> None:
        """Bind and hold the port; connections wait until `start`.

        Raises MillstreamError if the address cannot be bound, for instance because it is in use.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            # Two processes may bind one port at the same time as long as neither listens.
            listening.listen(CONNECTIONS_MAX)
        except OSError as error:
            listening.close()
            raise MillstreamError(
                f"cannot listen on {self.address} for HTTP ({error.strerror}): give another "
                "host:port, or port 0 for any that is free"
            ) from error
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        self._socket = listening

    async def start(self) -> None:
        """Start to serve requests; bind the port if `bind` was not called."""
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        await self._server.startup(sockets=[self._socket])
        self._ticking = asyncio.create_task(self._server.main_loop(), name=f"http-{self.port}")

    async def close(self) -> None:
        """Stop accepting connections, wait for running requests, and close. Further calls have no effect."""
        ticking, self._ticking = self._ticking, None
        if ticking is not None:
            ticking.cancel()
            await asyncio.wait([ticking])
            await self._server.shutdown(sockets=[] if self._socket is None else [self._socket])
        elif self._socket is not None:
            self._socket.close()
        self._socket = None
