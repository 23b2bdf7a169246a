"""The sending side of one connection: bytes and file slices, in order, straight to the socket.

Sending does not go through the transport. It holds a duplicate of the connection's descriptor: uvloop does
not let a transport's own descriptor be watched, and one sender alone keeps bytes and ``sendfile`` in order.
What the socket does not take at once waits here; the connection serves nothing new meanwhile, so that what
waits is bounded by what one turn produces (``FLUSH_AT`` and one response).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kafka_client.records.slice import FileSlice

Part: TypeAlias = bytes | FileSlice

FLUSH_AT = 256 * 1024
"""Bytes of answers gathered in one turn before they are sent without waiting for the turn's end."""
TURN_BYTES = 4 * 1024 * 1024
"""Most bytes sent to one client before others get their turn."""
COPY_BYTES = 256 * 1024
"""Bytes read at a time where slices are copied."""
SMALL_BYTES = 32 * 1024
"""Responses whose parts have at most this many bytes leave in one send: cheaper than one for each."""
SMALL_SLICE_BYTES = 8 * 1024
"""Slices up to this size are read and sent together with their neighbours, for the same reason."""

_MORE: int = getattr(socket, "MSG_MORE", 0)  # Linux alone has it
_WOULD_BLOCK = (BlockingIOError, InterruptedError)


class Output:
    """``drained`` is called when nothing waits any more, ``failed`` when waiting parts could not be sent."""

    __slots__ = (
        "_copy",
        "_drained",
        "_failed",
        "_loop",
        "_opened",
        "_parts",
        "_position",
        "_socket",
        "_watching",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        copy: bool,
        drained: Callable[[], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._copy = copy
        self._drained = drained
        self._failed = failed
        self._opened = False
        self._parts: deque[Part] = deque()
        self._position = 0  # how much of the first part has been sent
        self._watching = False
        self._socket: socket.socket

    def open(self, descriptor: int) -> None:
        """Open a socket on a duplicate of the connection's ``descriptor``, for `send`.

        Raises OSError if the process has no descriptor left.
        """
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._socket.setblocking(False)
        self._opened = True

    @property
    def is_blocked(self) -> bool:
        """True if something waits for the client to read."""
        return self._watching

    def statistics(self) -> dict[str, int]:
        """Return the bytes that wait to be sent, by name.

        `bytes` are in memory. Beyond `bytes_max` no further response is added. `file_bytes` are not read from
        their files yet.
        """
        files = sum(part.length for part in self._parts if isinstance(part, FileSlice))
        size = sum(len(part) for part in self._parts if not isinstance(part, FileSlice))
        if self._position and isinstance(self._parts[0], FileSlice):
            files -= self._position
        else:
            size -= self._position
        return {"bytes": size, "bytes_max": FLUSH_AT, "file_bytes": files}

    def send_bytes(self, data: bytes) -> None:
        """Send ``data`` after all that waits. Raises OSError when the connection is gone."""
        if not self._parts:
            try:
                sent = self._socket.send(data)
            except _WOULD_BLOCK:
                sent = 0
            if sent == len(data):
                return
            self._position = sent
        self._parts.append(data)
        self._watch()

    def send(self, parts: list[Part]) -> None:
        """Send ``parts`` in order after all that waits. Raises OSError when the connection is gone."""
        if not self._parts and _is_small(parts):
            self.send_bytes(_joined(parts))
            return
        self._parts.extend(parts)
        if not self._watching:
            self._advance()

    def close(self) -> None:
        """Drop the unsent parts and close the descriptor."""
        self._stop_watching()
        self._drop()
        if self._opened:
            self._socket.close()

    def _advance(self) -> None:
        """Send until nothing is left, the socket takes no more, or this turn's share was sent."""
        budget = TURN_BYTES
        parts = self._parts
        try:
            while parts and budget > 0:
                part = parts[0]
                if len(parts) > 2 and not self._position:
                    part = self._gather()
                if isinstance(part, FileSlice):
                    size = part.length - self._position
                    sent = self._send_slice(part)
                else:
                    size = len(part) - self._position
                    sent = self._send_part(part)
                budget -= sent
                if sent < size:
                    self._position += sent
                else:
                    self._position = 0
                    parts.popleft()
        except _WOULD_BLOCK:
            pass
        if parts:
            self._watch()

    def _gather(self) -> Part:
        """Return the small parts at the front as one part, of at most `COPY_BYTES`; return a larger part as
        it is.
        """
        parts, room, count = self._parts, COPY_BYTES, 0
        for part in parts:
            is_slice = isinstance(part, FileSlice)
            size = part.length if isinstance(part, FileSlice) else len(part)
            room -= size
            if room < 0 or (is_slice and size > SMALL_SLICE_BYTES):
                break
            count += 1
        if count > 1:
            parts_taken = [parts.popleft() for _ in range(count)]
            parts.appendleft(_joined(parts_taken))
        return parts[0]

    def _send_part(self, part: bytes) -> int:
        more = _MORE if len(self._parts) > 1 else 0
        return self._socket.send(memoryview(part)[self._position :], more)

    def _send_slice(self, part: FileSlice) -> int:
        offset = part.position + self._position
        size = part.length - self._position
        if self._copy:
            data = os.pread(part.fd, min(size, COPY_BYTES), offset)
            sent = self._socket.send(data) if data else 0
        else:
            sent = os.sendfile(self._socket.fileno(), part.fd, offset, size)
        if sent == 0:
            raise _too_short(offset, size)
        return sent

    def _drop(self) -> None:
        self._parts.clear()
        self._position = 0

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _stop_watching(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._socket.fileno())

    def _on_writable(self) -> None:
        try:
            self._advance()
        except OSError as error:
            self._drop()
            self._stop_watching()
            self._failed(error)
            return
        if not self._parts:
            self._stop_watching()
            self._drained()


def _is_small(parts: list[Part]) -> bool:
    left = SMALL_BYTES
    for part in parts:
        left -= part.length if isinstance(part, FileSlice) else len(part)
    return left >= 0


def _joined(parts: Sequence[Part]) -> bytes:
    return b"".join([part if isinstance(part, bytes) else _read(part) for part in parts])


def _read(part: FileSlice) -> bytes:
    data = os.pread(part.fd, part.length, part.position)
    if len(data) < part.length:
        raise _too_short(part.position + len(data), part.length - len(data))
    return data


def _too_short(offset: int, missing: int) -> OSError:
    return OSError(f"file ends at {offset}, {missing} bytes short of what was promised")
