"""Serving an ASGI application in the running event loop, from a listener given as host:port.

Signals, logging and the event loop stay the process's own: uvicorn has none of them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import uvicorn

from kafka_client.errors import MillstreamError

CONNECTIONS_MAX = 200
"""Connections, or requests at work, beyond which more are answered 503."""
SHUTDOWN_SECONDS = 3
"""Requests at work have so long to end when the server closes."""


class HttpServer:
    """``listener``: host:port; port 0 is any that is free. `start`, then `close`. ``tls`` makes it HTTPS."""

    def __init__(self, app: Any, listener: str, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = listener.rpartition(":")
        self.host = host.removeprefix("[").removesuffix("]")
        self.port = int(port)
        """The one it listens on, once it has started."""
        config = uvicorn.Config(
            app,
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

    def bind(self) -> None:
        """Take the port; MillstreamError if somebody has it. Connections wait until `start`."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
        except OSError as error:
            listening.close()
            raise MillstreamError(
                f"cannot listen on {self.host}:{self.port} for HTTP ({error.strerror}): give another "
                "host:port, or port 0 for any that is free"
            ) from error
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        self._socket = listening

    async def start(self) -> None:
        """Serve from now on."""
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        await self._server.startup(sockets=[self._socket])
        self._ticking = asyncio.create_task(self._server.main_loop(), name=f"http-{self.port}")

    async def close(self) -> None:
        """Take no more connections, let requests at work end, close; idempotent."""
        ticking, self._ticking = self._ticking, None
        if ticking is not None:
            ticking.cancel()
            await asyncio.wait([ticking])
            await self._server.shutdown(sockets=[] if self._socket is None else [self._socket])
        elif self._socket is not None:
            self._socket.close()
        self._socket = None
