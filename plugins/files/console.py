"""ConsoleLines: the lines of a terminal or a pipe, read without waiting long."""

from __future__ import annotations

import os
import select
from collections import deque

_WAIT_SECONDS = 0.2
"""How long a read waits for input."""
_READ_BYTES = 64 * 1024


class ConsoleLines:
    """The lines of a file descriptor that cannot be sought, such as standard input, in UTF-8."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._partial = b""
        """The beginning of a line whose end has not come."""
        self._is_at_end = False

    @property
    def has_ended(self) -> bool:
        """True if the input has ended and every line was returned."""
        return self._is_at_end and not self._lines

    def read(self, most: int) -> list[str]:
        """Return at most `most` lines without their ends; none if no line comes for a moment."""
        is_empty = not self._lines and not self._is_at_end
        if is_empty and select.select([self._descriptor], [], [], _WAIT_SECONDS)[0]:
            self._receive()
        count = min(most, len(self._lines))
        return [self._lines.popleft().decode(errors="replace") for _ in range(count)]

    def _receive(self) -> None:
        data = os.read(self._descriptor, _READ_BYTES)
        *lines, self._partial = (self._partial + data).split(b"\n")
        if not data:
            self._is_at_end = True
            lines = [self._partial] if self._partial else []
        self._lines.extend(line.removesuffix(b"\r") for line in lines)
