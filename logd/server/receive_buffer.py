"""What one connection has received and not served yet: a small buffer of its own, a lent one for more.

    own, BUFFER_BYTES, doubled up to READ_WINDOW ──(a larger request)──▶ lent ──(it is served)──▶ own

Who may receive a large request, and when, is the connection's to ask (`receive_buffers`).
"""

from __future__ import annotations

import mmap
import struct

from logd.server.receive_buffers import ReceiveBuffers

BUFFER_BYTES = 16 * 1024
"""Size of a new or an idle connection's receive buffer; it doubles as bytes arrive that do not fit."""
READ_WINDOW = 64 * 1024
"""A request larger than this is read to its end and not beyond, so that nothing has to be moved after. It is
also the most that a connection has for itself.
"""
LENGTH = struct.Struct(">i")
"""What a request begins with: how many bytes come behind it."""


class ReceiveBuffer:
    """``buffer[start:filled]`` has arrived and is not served yet; ``view`` is of the whole buffer.

    Who serves requests moves ``start`` on, both to 0 when nothing is left, and then calls `give_back` if the
    buffer ``is_lent``. Who receives adds to ``filled``.
    """

    __slots__ = ("_lender", "_own", "buffer", "filled", "is_lent", "start", "view")

    def __init__(self, lender: ReceiveBuffers) -> None:
        self._lender = lender
        self._own = bytearray(BUFFER_BYTES)
        self.buffer: bytearray | mmap.mmap = self._own
        self.view = memoryview(self.buffer)
        self.is_lent = False
        self.start = 0
        self.filled = 0

    def room(self) -> memoryview:
        """Room for more bytes; doubled when there is none, whatever length a request announces."""
        start, filled, capacity = self.start, self.filled, len(self.buffer)
        size = 0
        if filled - start >= LENGTH.size:
            size = LENGTH.unpack_from(self.buffer, start)[0] + LENGTH.size
        if start > 0 and (start + size > capacity or filled == capacity):
            self._move_to_front()
        if self.filled == capacity:
            self._grow()
        start, filled = self.start, self.filled
        if size > READ_WINDOW and filled < start + size <= len(self.buffer):
            return self.view[filled : start + size]
        return self.view[filled:]

    def announced(self) -> int:
        """What the request at the front says it takes, its length included. Its length has arrived."""
        size: int = LENGTH.unpack_from(self.buffer, self.start)[0]
        return size + LENGTH.size

    def give_back(self) -> bool:
        """Go on in the connection's own buffer if what is left, and the request it begins, has room there;
        whether it has.
        """
        left = self.filled - self.start
        if max(left, self.announced() if left >= LENGTH.size else 0) > len(self._own):
            return False
        self._replace(self._own)
        return True

    def shrink(self) -> None:
        """Have no more than a new connection, if nothing has arrived."""
        if self.buffer is self._own and len(self._own) > BUFFER_BYTES and self.filled == 0:
            self._own = bytearray(BUFFER_BYTES)
            self._replace(self._own)

    def close(self) -> None:
        """Forget what has arrived, and have no buffer any more."""
        self.start = self.filled = 0
        self._own = bytearray()
        self._replace(self._own)

    def _move_to_front(self) -> None:
        size = self.filled - self.start
        self.view[:size] = self.view[self.start : self.filled]
        self.start, self.filled = 0, size

    def _grow(self) -> None:
        size = 2 * len(self.buffer)
        if size <= READ_WINDOW:
            self._own = bytearray(size)
            self._replace(self._own)
        else:
            self._replace(self._lender.lend(size, self.announced()))

    def _replace(self, buffer: bytearray | mmap.mmap) -> None:
        view, left = memoryview(buffer), self.filled - self.start
        view[:left] = self.view[self.start : self.filled]
        before, self.buffer, self.view = self.buffer, buffer, view
        self.is_lent = buffer is not self._own
        self.start, self.filled = 0, left
        if isinstance(before, mmap.mmap):
            self._lender.give_back(before, outgrown=len(before) < len(buffer))
