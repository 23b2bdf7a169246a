"""Cutting what is read into lines, a chunk at a time."""

from __future__ import annotations


class Splitter:
    """Lines end with `delimiter`; the last one need not."""

    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._rest: list[bytes] = []
        self.pending = 0
        """Bytes of the line that has not ended."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are whole now."""
        # A delimiter of several bytes may come in two parts.
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
        """The last line, if something stands behind the last delimiter."""
        rest, self._rest = b"".join(self._rest), []
        return [rest] if rest else []
