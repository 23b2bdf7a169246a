"""Where a store's bytes live: the interface, and the one in memory.

A backend holds sorted keys and a *checkpoint*: the changelog offset up to which its content is complete.
Both change together in one `write`, so a backend is always the store as of one commit. `as_of` is a time at
which the changelog had no records after the checkpoint. Restore needs it: tombstones after the checkpoint are
not older than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from streams.state.sorted_keys import SortedKeys

Update = tuple[bytes, bytes | None]
"""A key and its new value; None deletes."""
Range = tuple[bytes, bytes]
"""All keys from the first (included) up to the second (excluded)."""


class Backend(Protocol):
    """Sorted bytes with a checkpoint."""

    @property
    def checkpoint(self) -> int | None:
        """Changelog offset the content reflects, None for a fresh backend."""
        ...

    @property
    def origin(self) -> bytes | None:
        """The topic id of the checkpoint's changelog, as given to `wipe`."""
        ...

    @property
    def as_of(self) -> int | None:
        """Wall clock, ms: every changelog record after the checkpoint is younger. None if unknown."""
        ...

    def properties(self) -> Mapping[str, float]:
        """Return the database's own figures by the names of Kafka's `stream-state-metrics`.

        May be called while another thread uses the backend.
        """
        ...

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, or None."""
        ...

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over ``lower <= key < upper`` in key order, or from the last key to the first."""
        ...

    def write(
        self,
        updates: Iterable[Update],
        checkpoint: int | None,
        as_of: int | None = None,
        dropped: Iterable[Range] = (),
    ) -> None:
        """Delete all keys in the ranges ``dropped``, then apply the updates and the checkpoint, in one write.

        Updates are applied in order, so a key's last update counts. ``as_of`` None leaves `as_of` unchanged.
        """
        ...

    def wipe(self, origin: bytes | None = None) -> None:
        """Delete all content and the checkpoint. ``origin``: topic id of the changelog of later writes."""
        ...

    def close(self) -> None:
        """Close the backend's files; idempotent."""
        ...


class BackendOver:
    """Base of a backend with a key layout of its own: passes on what the layout leaves alone to ``inner``."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def checkpoint(self) -> int | None:
        return self._inner.checkpoint

    @property
    def origin(self) -> bytes | None:
        return self._inner.origin

    @property
    def as_of(self) -> int | None:
        return self._inner.as_of

    def properties(self) -> Mapping[str, float]:
        return self._inner.properties()

    def close(self) -> None:
        self._inner.close()


class MemoryBackend:
    """A backend in memory: a dict, and after the first scan its keys in order.

    Most stores are never scanned. The first scan sorts all keys, a million in one to two seconds.
    """

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._keys: SortedKeys | None = None
        self._checkpoint: int | None = None
        self._origin: bytes | None = None
        self._as_of: int | None = None

    @property
    def checkpoint(self) -> int | None:
        return self._checkpoint

    @property
    def origin(self) -> bytes | None:
        return self._origin

    @property
    def as_of(self) -> int | None:
        return self._as_of

    def properties(self) -> Mapping[str, float]:
        return {}

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for key in self._sorted().range(lower, upper, backwards=backwards):
            yield key, self._data[key]

    def write(
        self,
        updates: Iterable[Update],
        checkpoint: int | None,
        as_of: int | None = None,
        dropped: Iterable[Range] = (),
    ) -> None:
        data = self._data
        for lower, upper in dropped:
            ordered = self._sorted()
            for key in list(ordered.range(lower, upper)):
                del data[key]
                ordered.remove(key)
        keys = self._keys
        for key, value in updates:
            if value is None:
                if data.pop(key, None) is not None and keys is not None:
                    keys.remove(key)
            else:
                if keys is not None and key not in data:
                    keys.add(key)
                data[key] = value
        self._checkpoint = checkpoint
        self._as_of = self._as_of if as_of is None else as_of

    def _sorted(self) -> SortedKeys:
        if self._keys is None:
            self._keys = SortedKeys(self._data)
        return self._keys

    def wipe(self, origin: bytes | None = None) -> None:
        self._data.clear()
        self._keys = None
        self._checkpoint = self._as_of = None
        self._origin = origin

    def close(self) -> None:
        pass
