"""A connection's received bytes that are not served yet. Mostly there are none, and then it has no buffer.

    window, shared by all ──(a part is left)──▶ own ──(a larger request)──▶ lent
         ▲                                       │                           │
         └───────────────(all is served)─────────┴───────────────────────────┘

Requests are received into one window and served out of it before anything else is received. So its memory
stays in the processor's cache, and a connection has a buffer only while a request is there in part or waits.
Who may receive a large request, and when, is the connection's to ask (`receive_buffers`).
"""

from __future__ import annotations

import mmap
import struct

from logd.server.receive_buffers import READ_WINDOW, ReceiveBuffers

BUFFER_BYTES = 16 * 1024
"""Smallest buffer of a connection's own; it doubles as bytes arrive that do not fit, up to READ_WINDOW."""
LENGTH = struct.Struct(">i")
"""The length field of a request: the number of bytes after it."""


class ReceiveBuffer:
    """The bytes received by a connection: ``buffer[start:filled]`` is not served yet; ``view`` is of the
    whole buffer.

    Call `served` after serving requests. After receiving, add to ``filled``, serve the whole requests, then
    call `keep`: another connection may use the window from then on.
    """

    __slots__ = ("_lender", "buffer", "filled", "is_lent", "start", "view")

    def __init__(self, lender: ReceiveBuffers) -> None:
        self._lender = lender
        self.buffer: bytearray | mmap.mmap = lender.window
        self.view = lender.window_view
        self.is_lent = False
        self.start = 0
        self.filled = 0

    def room(self) -> memoryview:
        """Return room for more bytes, after doubling the buffer if it is full, whatever length a request
        announces.
        """
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
        """Return the bytes of the request at the front, with its length field, which must have arrived."""
        size: int = LENGTH.unpack_from(self.buffer, self.start)[0]
        return size + LENGTH.size

    def served(self, start: int) -> bool:
        """Note that requests before ``start`` are served. Return True if a lent buffer was given back.

        It is once what is left, and the request that begins there, has room in one of the connection's own.
        """
        is_lent = self.is_lent and start > self.start
        self.start = start
        left = self.filled - start
        if not left:
            self.start = self.filled = 0
            if self.buffer is not self._lender.window:
                self._replace(self._lender.window)
            return is_lent
        if not is_lent or max(left, self.announced() if left >= LENGTH.size else 0) > READ_WINDOW:
            return False
        self._replace(_own(left))
        return True

    def keep(self, may_receive: bool) -> None:
        """Move what is left in the window into a buffer of the connection's own.

        A large request that fills the window goes into a lent one at once, if the connection ``may_receive``
        more of it.
        """
        if self.buffer is not self._lender.window:
            return
        left = self.filled - self.start
        if may_receive and left == READ_WINDOW:
            self._grow()
        else:
            self._replace(_own(left))

    def close(self) -> None:
        """Forget what has arrived, and have no buffer any more."""
        self.start = self.filled = 0
        self._replace(self._lender.window)

    def _move_to_front(self) -> None:
        size = self.filled - self.start
        self.view[:size] = self.view[self.start : self.filled]
        self.start, self.filled = 0, size

    def _grow(self) -> None:
        size = 2 * len(self.buffer)
        if size <= READ_WINDOW:
            self._replace(bytearray(size))
        else:
            self._replace(self._lender.lend(size, self.announced()))

    def _replace(self, buffer: bytearray | mmap.mmap) -> None:
        view, left = memoryview(buffer), self.filled - self.start
        view[:left] = self.view[self.start : self.filled]
        before, self.buffer, self.view = self.buffer, buffer, view
        self.is_lent = isinstance(buffer, mmap.mmap)
        self.start, self.filled = 0, left
        if isinstance(before, mmap.mmap):
            self._lender.give_back(before, outgrown=len(before) < len(buffer))


def _own(size: int) -> bytearray:
    """Return a buffer of a connection's own with room for `size` bytes."""
    room = BUFFER_BYTES
    while room < size:
        room *= 2
    return bytearray(room)
