"""Encoded answers that hold until the catalog changes, so that asking again costs no more than sending.

Everything else that an answer depends on has to be in its key.
"""

from __future__ import annotations

from collections.abc import Hashable

BYTES_MAX = 16 * 1024 * 1024
"""Most bytes of answers and of the requests they are found by; who was asked for longest ago goes first."""


class ResponseCache:
    """Answers of one ``version`` of the catalog at a time; with a new one all are forgotten."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._answers: dict[Hashable, tuple[bytes, int]] = {}
        self._version = -1
        self._bytes = 0

    def statistics(self) -> dict[str, int]:
        """Return the count of cached responses, their size in bytes, and its bound."""
        return {"answers": len(self._answers), "bytes": self._bytes, "bytes_max": self._bytes_max}

    def find(self, key: Hashable, version: int) -> bytes | None:
        """Return the cached response for ``key``, or None if this version of the catalog has none."""
        if version != self._version:
            self._answers.clear()
            self._version, self._bytes = version, 0
        response = self._answers.pop(key, None)
        if response is None:
            return None
        self._answers[key] = response
        return response[0]

    def keep(self, key: Hashable, answer: bytes, key_bytes: int) -> None:
        """Remember an answer made as of the version last asked about; ``key_bytes`` is the key's size."""
        size = len(answer) + key_bytes
        if size > self._bytes_max:
            return
        self._forget(key)
        self._answers[key] = answer, size
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._forget(next(iter(self._answers)))

    def _forget(self, key: Hashable) -> None:
        response = self._answers.pop(key, None)
        if response is not None:
            self._bytes -= response[1]
