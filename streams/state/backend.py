"""Where a store's bytes live: the interface, and the one in memory.

A backend holds sorted keys and a *checkpoint*: the changelog offset up to which its content is complete.
Both change together in one `write`, so a backend is always the store as of one commit. `as_of` is a time at
which the changelog had nothing behind the checkpoint yet: restore must know how old tombstones there may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from streams.state.sorted_keys import SortedKeys

Update = tuple[bytes, bytes | None]
"""A key and its new value; None deletes."""
Range = tuple[bytes, bytes]
"""All keys from the first up to the second, which is not in it."""


class Backend(Protocol):
    """Sorted bytes with a checkpoint."""

    @property
    def checkpoint(self) -> int | None:
        """Changelog offset the content reflects, None for a fresh backend."""
        ...

    @property
    def origin(self) -> bytes | None:
        """The topic id of that changelog, as given to `wipe`."""
        ...

    @property
    def as_of(self) -> int | None:
        """Wall clock, ms: every changelog record behind the checkpoint is younger. None if unknown."""
        ...

    def properties(self) -> Mapping[str, float]:
        """What the database tells of itself by the names of Kafka's `stream-state-metrics`; may be called
        while another thread is at work here.
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
        """Delete all keys in the ranges ``dropped``, apply all updates, and the new checkpoint, at once; in
        order, so a key's last update counts.

        ``as_of`` None: that time is left as it is.
        """
        ...

    def wipe(self, origin: bytes | None = None) -> None:
        """Forget everything, the checkpoint too; what is written from now on is of the changelog `origin`."""
        ...

    def close(self) -> None:
        """Let go of files; idempotent."""
        ...


class BackendOver:
    """What a backend hands on that lays its keys out in another, ``inner``, in a way of its own."""

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
    """A dict, and its keys in order from when they are first asked for in order.

    Most stores never are; those that are sort once what they have by then, a million in one to two seconds.
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
