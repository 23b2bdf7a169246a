"""Where a store's bytes live: the interface, and the one in memory.

A backend holds sorted keys and a *checkpoint*: the changelog offset up to which its content is complete.
Both change together in one `write`, so a backend is always the store as of one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

Update = tuple[bytes, bytes | None]
"""A key and its new value; None deletes."""


class Backend(Protocol):
    """Sorted bytes with a checkpoint."""

    @property
    def checkpoint(self) -> int | None:
        """Changelog offset the content reflects, None for a fresh backend."""
        ...

    @property
    def origin(self) -> bytes | None:
        """The topic id of that changelog: what `wipe` was told."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, or None."""
        ...

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over ``lower <= key < upper`` in key order."""
        ...

    def write(self, updates: Iterable[Update], checkpoint: int | None) -> None:
        """Apply all updates and the new checkpoint at once; in order, so a key's last update counts."""
        ...

    def wipe(self, origin: bytes | None = None) -> None:
        """Forget everything, the checkpoint too; what is written from now on is of the changelog `origin`."""
        ...

    def close(self) -> None:
        """Let go of files; idempotent."""
        ...


class MemoryBackend:
    """A dict; sorted only when scanned."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._checkpoint: int | None = None
        self._origin: bytes | None = None

    @property
    def checkpoint(self) -> int | None:
        return self._checkpoint

    @property
    def origin(self) -> bytes | None:
        return self._origin

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(self._data):
            if lower is not None and key < lower:
                continue
            if upper is not None and key >= upper:
                return
            yield key, self._data[key]

    def write(self, updates: Iterable[Update], checkpoint: int | None) -> None:
        for key, value in updates:
            if value is None:
                self._data.pop(key, None)
            else:
                self._data[key] = value
        self._checkpoint = checkpoint

    def wipe(self, origin: bytes | None = None) -> None:
        self._data.clear()
        self._checkpoint = None
        self._origin = origin

    def close(self) -> None:
        pass
