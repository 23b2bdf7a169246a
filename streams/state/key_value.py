"""The key-value store: one value per key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from streams.serdes import SerdeLike, serde_for
from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.spec import StoreSpec

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(CachedStore, Generic[K, V]):
    """A cached store with typed keys and values. Ranges are in the byte order of serialized keys.

    A method that reads many keys reads them all at its call, so the store may be changed while its result is
    iterated over.
    """

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self.now: Callable[[], int] = lambda: 0
        """Returns the timestamp (ms) of the record being processed; the task sets it."""

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, None if absent."""
        entry = self.lookup(self.spec.key_serde.serialize(key))
        value: V | None = None if entry is None else entry[0]
        return value

    def get_timestamp(self, key: K) -> int | None:
        """Return the timestamp (ms) of the value of ``key``, None if absent."""
        entry = self.lookup(self.spec.key_serde.serialize(key))
        return None if entry is None else entry[1]

    def put(self, key: K, value: V | None, timestamp: int | None = None) -> None:
        """Set ``key``; a value of None deletes it.

        ``timestamp`` (ms) is that of the record being processed unless given.
        """
        when = self.now() if timestamp is None else timestamp
        self.update(self.spec.key_serde.serialize(key), value, when)

    def put_if_absent(self, key: K, value: V | None, timestamp: int | None = None) -> V | None:
        """Set ``key`` unless it has a value already. Return that value, None if the key was set."""
        before = self.get(key)
        if before is None:
            self.put(key, value, timestamp)
        return before

    def put_all(self, entries: Iterable[tuple[K, V | None]], timestamp: int | None = None) -> None:
        """Set each key to its value, as `put` does."""
        for key, value in entries:
            self.put(key, value, timestamp)

    def delete(self, key: K) -> None:
        """Remove ``key``."""
        self.put(key, None)

    def all(self) -> Iterator[tuple[K, V]]:
        """Iterate over all keys and values, in key order."""
        return self._typed(self.scan())

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """Iterate over all keys and values, from the last key to the first."""
        return self._typed(reversed(self.scan()))

    def range(self, lower: K | None = None, upper: K | None = None) -> Iterator[tuple[K, V]]:
        """Iterate over the keys from ``lower`` to ``upper``, both included; None is no bound."""
        return self._typed(self.scan(*self._bounds(lower, upper)))

    def reverse_range(self, lower: K | None = None, upper: K | None = None) -> Iterator[tuple[K, V]]:
        """Iterate over the keys of `range` from the last to the first (KIP-617)."""
        return self._typed(reversed(self.scan(*self._bounds(lower, upper))))

    def prefix_scan(self, prefix: Any, serde: SerdeLike | None = None) -> Iterator[tuple[K, V]]:
        """Iterate over the keys whose bytes begin with those of ``prefix`` (KIP-614).

        ``serde`` serializes the prefix; by default it is the key serde.
        """
        begin = (serde_for(serde) or self.spec.key_serde).serialize(prefix)
        return self._typed(self.scan(begin, _end_of_prefix(begin)))

    def _bounds(self, lower: K | None, upper: K | None) -> tuple[bytes | None, bytes | None]:
        serialize = self.spec.key_serde.serialize
        return (
            None if lower is None else serialize(lower),
            None if upper is None else serialize(upper) + b"\x00",
        )

    def _typed(self, rows: Iterable[tuple[bytes, Any, int]]) -> Iterator[tuple[K, V]]:
        deserialize = self.spec.key_serde.deserialize
        return ((deserialize(key), value) for key, value, _ in rows)


def _end_of_prefix(prefix: bytes) -> bytes | None:
    """Return the first bytes after all that begin with the prefix, None if there are none."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes((short[-1] + 1,)) if short else None
