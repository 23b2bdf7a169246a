"""Receive buffers for large requests: lent to a connection while one is in them, shared by all connections.

    own buffer of the connection ──▶ lent ──▶ given back: kept for the next large request, or unmapped

What is free stays mapped up to ``KEPT_BYTES_MAX``, and after a `trim` no more than was lent at one time since
the one before: a producer of large batches finds its pages again, and a burst leaves nothing behind. Memory
comes from mmap, since what the allocator takes back it seldom returns to the system. Where there is a bound
(``queued.max.request.bytes``), connections wait for their turn to receive a large request.
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
    """One for all listeners. Sizes are what connections ask for, doubled each time.

    ``window`` is where all connections receive that have nothing waiting, and ``window_view`` a view of it.
    ``announced_bytes_max``: most bytes that the requests being received announce together; -1 is no bound.
    """

    def __init__(self, kept_bytes_max: int = KEPT_BYTES_MAX, announced_bytes_max: int = -1) -> None:
        self.window = bytearray(READ_WINDOW)
        self.window_view = memoryview(self.window)
        self._kept_bytes_max = kept_bytes_max
        self._free: dict[int, list[mmap.mmap]] = {}
        self._kept = self._lent = self._lent_most = 0
        self._announced_bytes_max = announced_bytes_max
        self._admitted: dict[object, int] = {}
        self._admitted_bytes = 0
        self._queue: dict[object, tuple[int, Callable[[], None]]] = {}

    def statistics(self) -> dict[str, int]:
        """Bytes lent; kept free, and their bound; announced by requests that were admitted, and their bound
        (-1: none); connections that wait for their turn.
        """
        return {
            "lent_bytes": self._lent,
            "kept_bytes": self._kept,
            "kept_bytes_max": self._kept_bytes_max,
            "announced_bytes": self._admitted_bytes,
            "announced_bytes_max": self._announced_bytes_max,
            "waiting": len(self._queue),
        }

    def admit(self, who: object, announced: int, admitted: Callable[[], None]) -> bool:
        """Whether `who` may receive a large request that it announced; otherwise ``admitted`` is called at
        its turn. `dismiss` ends it.

        The last one admitted may go beyond the bound, as in Kafka: else a large request might wait for ever
        behind small ones. A request counts with its whole size at once, so that none that was admitted has to
        wait half-way.
        """
        if who in self._admitted:  # also with the next one, of which it has a part already
            self._admitted_bytes += announced - self._admitted[who]
            self._admitted[who] = announced
            return True
        if not self._queue and self._has_room:
            self._let_in(who, announced)
            return True
        self._queue.setdefault(who, (announced, admitted))
        return False

    def dismiss(self, who: object) -> None:
        """Its large request is served, or will not come: let in who waits."""
        self._queue.pop(who, None)
        self._admitted_bytes -= self._admitted.pop(who, 0)
        while self._queue and self._has_room:
            first = next(iter(self._queue))
            announced, admitted = self._queue.pop(first)
            self._let_in(first, announced)
            admitted()

    @property
    def _has_room(self) -> bool:
        return self._announced_bytes_max <= 0 or self._admitted_bytes < self._announced_bytes_max

    def _let_in(self, who: object, announced: int) -> None:
        self._admitted[who] = announced
        self._admitted_bytes += announced

    def lend(self, size: int, announced: int) -> mmap.mmap:
        """A buffer of ``size`` bytes, or a free one that has room for all that is ``announced``.

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
        if not outgrown and self._kept + size <= self._kept_bytes_max:
            self._free.setdefault(size, []).append(buffer)
            self._kept += size

    def trim(self) -> None:
        """Unmap what has not been needed since the last call; to be called every few seconds."""
        while self._free and self._lent + self._kept > self._lent_most:
            self._take(max(self._free))
        self._lent_most = self._lent

    def _take(self, size: int) -> mmap.mmap:
        row = self._free[size]
        buffer = row.pop()
        if not row:
            del self._free[size]
        self._kept -= size
        return buffer

    def _note_lent(self, buffer: mmap.mmap) -> mmap.mmap:
        self._lent += len(buffer)
        self._lent_most = max(self._lent_most, self._lent)
        return buffer
