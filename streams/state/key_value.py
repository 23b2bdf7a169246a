"""The key-value store: one value per key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.spec import StoreSpec

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(CachedStore, Generic[K, V]):
    """Typed reading and writing over the cache. Keys come in the byte order of their serde."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self.now: Callable[[], int] = lambda: 0
        """The time of the record in work, ms; the task sets it."""

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
        """Set ``key``, at the time of the record in work unless ``timestamp`` (ms) is given; None deletes."""
        when = self.now() if timestamp is None else timestamp
        self.update(self.spec.key_serde.serialize(key), value, when)

    def delete(self, key: K) -> None:
        """Remove ``key``."""
        self.put(key, None)

    def all(self) -> Iterator[tuple[K, V]]:
        """Every key and value."""
        return self._typed(self.scan())

    def range(self, lower: K, upper: K) -> Iterator[tuple[K, V]]:
        """Keys from ``lower`` to ``upper``, both included."""
        serialize = self.spec.key_serde.serialize
        return self._typed(self.scan(serialize(lower), serialize(upper) + b"\x00"))

    def _typed(self, found: list[tuple[bytes, Any, int]]) -> Iterator[tuple[K, V]]:
        deserialize = self.spec.key_serde.deserialize
        return ((deserialize(key), value) for key, value, _ in found)
