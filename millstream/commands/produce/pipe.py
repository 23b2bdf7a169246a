"""Reading a pipe, a terminal or a file as much at a time as there is, until told to stop.

A thread that waits in `read` could not be ended by Ctrl-C: this one waits for the file and for a pipe of its
own, through which `stop` wakes it.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
from contextlib import suppress

CHUNK_BYTES = 1 << 20
_PIPE_BYTES = 1 << 20
"""A pipe holds 64 KB unless asked for more (Linux): with more, fewer turns are needed."""


class Pipe:
    """Reads the file of a descriptor, which stays open at the end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._woken, self._wake = os.pipe()
        self._closing = threading.Lock()
        self._closed = False
        with suppress(OSError, AttributeError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def read(self) -> bytes:
        """What is there, `CHUNK_BYTES` at most, once there is something; b"" at the end, and when stopped."""
        # Not select: that refuses descriptors from 1,024 on. A regular file is always ready.
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN | select.POLLHUP)
        poll.register(self._woken, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll()}
        return b"" if self._woken in ready else os.read(self._descriptor, CHUNK_BYTES)

    def stop(self) -> None:
        """Have a `read` that waits return, and all that follow."""
        with self._closing:
            if not self._closed:
                os.write(self._wake, b"\0")

    def close(self) -> None:
        """No `read` may be under way."""
        with self._closing:
            self._closed = True
            os.close(self._woken)
            os.close(self._wake)
