"""Splitting the input into lines, a chunk at a time."""

from __future__ import annotations


class Splitter:
    """A splitter of lines that end with `delimiter`; the last line may lack it."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._rest: list[bytes] = []
        self.pending = 0
        """The number of bytes of the incomplete line."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that are complete."""
        # A delimiter of several bytes may be split over two chunks.
        if len(self._delimiter) > 1 and self._rest:
            chunk = self._rest.pop() + chunk
        lines = chunk.split(self._delimiter)
        if len(lines) == 1:
            self._rest.append(chunk)
            self.pending = sum(map(len, self._rest))
            return []
        if self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
        self._rest = [lines.pop()]
        self.pending = len(self._rest[0])
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if it lacks a delimiter."""
        rest, self._rest = b"".join(self._rest), []
        return [rest] if rest else []
