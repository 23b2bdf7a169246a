"""The sending side of a connection with TLS: bytes and file slices in order, through the transport.

It has the methods of `logd.server.output.Output`. TLS encrypts in memory, so slices of files are read.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from kafka_client.records.slice import FileSlice
from logd.server.output import COPY_BYTES, FLUSH_AT, TURN_BYTES, Part


class TlsOutput:
    """The output of one connection; `drained` and `failed` as for `Output`."""

    __slots__ = (
        "_drained",
        "_failed",
        "_is_paused",
        "_is_scheduled",
        "_loop",
        "_parts",
        "_position",
        "_transport",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        *,
        drained: Callable[[], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._drained = drained
        self._failed = failed
        self._parts: deque[Part] = deque()
        self._position = 0  # bytes of the first part that are sent
        self._is_paused = False
        self._is_scheduled = False

    def open(self, descriptor: int) -> None:
        """Do nothing: the transport sends by its own descriptor."""

    @property
    def is_blocked(self) -> bool:
        """True if something waits for the client to read."""
        return self._is_paused or bool(self._parts)

    def statistics(self) -> dict[str, int]:
        """Return the bytes that wait to be sent, by name, as `Output.statistics`."""
        files = sum(part.length for part in self._parts if isinstance(part, FileSlice))
        size = sum(len(part) for part in self._parts if not isinstance(part, FileSlice))
        size += self._transport.get_write_buffer_size()
        return {"bytes": size, "bytes_max": FLUSH_AT, "file_bytes": files}

    def send_bytes(self, data: bytes) -> None:
        """Send `data` after all that waits."""
        if self.is_blocked:
            self._parts.append(data)
        else:
            self._transport.write(data)

    def send(self, parts: list[Part]) -> None:
        """Send `parts` in order after all that waits. Raises OSError if a file cannot be read."""
        waits = self.is_blocked
        self._parts.extend(parts)
        if not waits:
            self._advance()

    def pause(self) -> None:
        """Send no more: the transport's buffer is full."""
        self._is_paused = True

    def resume(self) -> None:
        """Go on sending."""
        self._is_paused = False
        self._go_on()

    def close(self) -> None:
        """Drop the unsent parts."""
        self._parts.clear()
        self._position = 0

    def _go_on(self) -> None:
        self._is_scheduled = False
        try:
            self._advance()
        except OSError as error:
            self.close()
            self._failed(error)
            return
        if not self.is_blocked:
            self._drained()

    def _advance(self) -> None:
        """Write until nothing is left, the transport is full, or this turn's share is written."""
        parts, budget = self._parts, TURN_BYTES
        while parts and budget > 0 and not self._is_paused:
            part = parts[0]
            if isinstance(part, FileSlice):
                size = min(part.length - self._position, COPY_BYTES)
                data = os.pread(part.fd, size, part.position + self._position)
                if size and not data:
                    raise OSError(f"file ends at {part.position + self._position}, {size} bytes are missing")
                self._position += len(data)
                is_sent = self._position >= part.length
            else:
                data, is_sent = part, True
            if is_sent:
                parts.popleft()
                self._position = 0
            budget -= len(data)
            self._transport.write(data)
        if parts and not self._is_paused and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._go_on)
