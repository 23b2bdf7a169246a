"""The server's side of one HTTP connection, with bounds on what a client may hold open.

uvicorn waits without end for a request's first byte, for the rest of its head, and for a client to read its
answer. A few hundred such connections would take all that the server may have.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_log = logging.getLogger(__name__)

CONNECTIONS_MAX = 200
"""Open connections, or running requests, at most."""
HEAD_SECONDS = 30.0
"""Seconds that a client has for the head of a request, from the connection's start or the last answer."""
LINGER_SECONDS = 5.0
"""Seconds that a client may go on with a body after its answer. Closed at once, it could miss the answer."""


class BoundedProtocol(H11Protocol):
    """A connection whose client sends a request in time, reads its answer, and makes room for others.

    Of more than `CONNECTIONS_MAX` connections the one is closed whose client has been silent for the longest
    time, among those that wait for their client. So idle connections keep nobody out.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.heard_at = self.loop.time()
        """When the client last sent something, by the loop's clock."""
        self._deadline: asyncio.TimerHandle | None = None
        self._unsent = 0

    @property
    def waits_for_client(self) -> bool:
        """True if no complete request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: Any) -> None:
        """Take a new connection, in the place of a silent one if there are too many."""
        super().connection_made(transport)
        self._close_in(HEAD_SECONDS)
        while len(self.connections) >= CONNECTIONS_MAX and self._close_silent():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._keep_open()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client has sent."""
        self.heard_at = self.loop.time()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._keep_open()  # what answers the request has its own limit of time
        elif self._deadline is None:
            self._close_in(HEAD_SECONDS)

    def on_response_complete(self) -> None:
        """Wait for the next request, but not for the rest of a body that nobody reads."""
        is_partial = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if self.cycle.response_complete:
            self._close_in(LINGER_SECONDS if is_partial else HEAD_SECONDS)

    def _close_in(self, seconds: float) -> None:
        self._keep_open()
        self._unsent = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _keep_open(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        """Close the connection, unless its client is slow in reading a large answer."""
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            self._close_in(HEAD_SECONDS)
        else:
            self._deadline = None
            self.transport.abort()

    def _close_silent(self) -> bool:
        """Close another connection that waits for its client. Return False if there is none."""
        waiting = [
            each
            for each in self.connections
            if isinstance(each, BoundedProtocol) and each is not self and each.waits_for_client
        ]
        if not waiting:
            return False
        silent = min(waiting, key=lambda each: each.heard_at)
        _log.info("a silent connection of %s makes room for one of %s", silent.client, self.client)
        self.connections.discard(silent)
        silent.transport.abort()
        return True
