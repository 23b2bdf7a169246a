"""Receive buffers for large requests, which are lent to a connection for one request and shared by all
connections.

    own buffer of the connection ──▶ lent ──▶ given back: kept for the next large request, or unmapped

At most ``KEPT_BYTES_MAX`` of free buffers stay mapped. A `trim` unmaps free buffers until free and lent
ones have no more bytes than were lent at one time since the last `trim`. So a producer of large
batches finds its pages again, and a burst leaves no memory mapped. Memory comes from mmap, since an allocator
seldom returns memory to the system. If there is a bound (``queued.max.request.bytes``), connections wait for
their turn to receive a large request.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable

KEPT_BYTES_MAX = 16 * 1024 * 1024
"""Most bytes of free buffers that are kept."""
READ_WINDOW = 64 * 1024
"""Size of the window. A request larger than this is read to its end and not beyond, so that nothing has to be
moved after. It is also the most that a connection has for itself.
"""


class ReceiveBuffers:
    """The pool of receive buffers for all listeners. Connections ask for a size that doubles each time.

    All connections with nothing waiting receive into ``window``; ``window_view`` is a view of it.
    ``announced_bytes_max`` bounds the bytes that the requests being received announce together; -1 is no
    bound.
    """

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX, announced_bytes_max: int = -1) -> None:
        self.window = bytearray(READ_WINDOW)
        self.window_view = memoryview(self.window)
        self._kept_bytes_max = kept_bytes_max
        self._free: dict[int, list[mmap.mmap]] = {}
        self._kept_bytes = self._lent = self._lent_most = 0
        self._announced_bytes_max = announced_bytes_max
        self._admitted: dict[object, int] = {}
        self._admitted_bytes = 0
        self._queue: dict[object, tuple[int, Callable[[], None]]] = {}

    def statistics(self) -> dict[str, int]:
        """Return the buffers' bytes and bounds, by name.

        Lent bytes are in use by connections, kept bytes are free buffers. Announced bytes are the sizes of
        admitted requests; their bound is -1 if there is none. `waiting` counts connections to be admitted.
        """
        return {
            "lent_bytes": self._lent,
            "kept_bytes": self._kept_bytes,
            "kept_bytes_max": self._kept_bytes_max,
            "announced_bytes": self._admitted_bytes,
            "announced_bytes_max": self._announced_bytes_max,
            "waiting": len(self._queue),
        }

    def admit(self, connection: object, announced: int, admitted: Callable[[], None]) -> bool:
        """Return True if `connection` may receive the large request that it announced.

        Otherwise ``admitted`` is called at its turn. `dismiss` ends the admission. The last one admitted may
        exceed the bound, as in Kafka: else a large request might wait for ever while small ones pass. A
        request counts with its whole size at once, so that no admitted request has to wait half-way.
        """
        if connection in self._admitted:  # also with the next one, of which it has a part already
            self._admitted_bytes += announced - self._admitted[connection]
            self._admitted[connection] = announced
            return True
        if not self._queue and self._has_room:
            self._let_in(connection, announced)
            return True
        self._queue.setdefault(connection, (announced, admitted))
        return False

    def dismiss(self, connection: object) -> None:
        """End the admission of `connection`, whose request is served or will not come, and admit those that
        wait.
        """
        self._queue.pop(connection, None)
        self._admitted_bytes -= self._admitted.pop(connection, 0)
        while self._queue and self._has_room:
            first = next(iter(self._queue))
            announced, admitted = self._queue.pop(first)
            self._let_in(first, announced)
            admitted()

    @property
    def _has_room(self) -> bool:
        return self._announced_bytes_max <= 0 or self._admitted_bytes < self._announced_bytes_max

    def _let_in(self, connection: object, announced: int) -> None:
        self._admitted[connection] = announced
        self._admitted_bytes += announced

    def lend(self, size: int, announced: int) -> mmap.mmap:
        """Return a buffer of ``size`` bytes, or a free one that has room for all ``announced`` bytes.

        The announced size only chooses among free buffers; how much is allocated never depends on it.
        """
        for free_size in sorted(self._free):
            if free_size >= max(size, announced):
                return self._note_lent(self._take(free_size))
        buffer = self._take(size) if size in self._free else mmap.mmap(-1, size)
        return self._note_lent(buffer)

    def give_back(self, buffer: mmap.mmap, *, outgrown: bool = False) -> None:
        """Take a lent buffer back; the caller keeps no view of it.

        An ``outgrown`` one is not kept: the next request of its size is lent the larger one.
        """
        size = len(buffer)
        self._lent -= size
        if not outgrown and self._kept_bytes + size <= self._kept_bytes_max:
            self._free.setdefault(size, []).append(buffer)
            self._kept_bytes += size

    def trim(self) -> None:
        """Unmap the buffers that were not needed since the last call; to be called every few seconds."""
        while self._free and self._lent + self._kept_bytes > self._lent_most:
            self._take(max(self._free))
        self._lent_most = self._lent

    def _take(self, size: int) -> mmap.mmap:
        row = self._free[size]
        buffer = row.pop()
        if not row:
            del self._free[size]
        self._kept_bytes -= size
        return buffer

    def _note_lent(self, buffer: mmap.mmap) -> mmap.mmap:
        self._lent += len(buffer)
        self._lent_most = max(self._lent_most, self._lent)
        return buffer
