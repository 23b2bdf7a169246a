"""Reading a pipe, a terminal or a file: each read returns what is available, until stopped.

Ctrl-C cannot end a thread that waits in `read`. This reader waits for the file and for a pipe of its own,
through which `stop` wakes it.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
from contextlib import suppress

CHUNK_BYTES = 1 << 20
_PIPE_BYTES = 1 << 20
"""The requested size of a pipe's buffer, 64 KB by default (Linux): a larger one needs fewer reads."""


class Pipe:
    """A reader of a file descriptor, which it does not close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._woken, self._wake = os.pipe()
        self._closing = threading.Lock()
        self._closed = False
        with suppress(OSError, AttributeError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def read(self) -> bytes:
        """Wait for data and return up to `CHUNK_BYTES`; b"" at the end of the file and after `stop`."""
        # Not select: that refuses descriptors from 1,024 on. A regular file is always ready.
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN | select.POLLHUP)
        poll.register(self._woken, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll()}
        return b"" if self._woken in ready else os.read(self._descriptor, CHUNK_BYTES)

    def stop(self) -> None:
        """Make a waiting `read`, and all later ones, return b""."""
        with self._closing:
            if not self._closed:
                os.write(self._wake, b"\0")

    def close(self) -> None:
        """Close the wake-up pipe. No `read` may be running."""
        with self._closing:
            self._closed = True
            os.close(self._woken)
            os.close(self._wake)
