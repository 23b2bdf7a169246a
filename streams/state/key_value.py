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
    """Typed reading and writing over the cache. Keys come in the byte order of their serde.

    What reads many is of the moment of the call: the store may be changed while its result is gone through.
    """

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

    def put_if_absent(self, key: K, value: V | None, timestamp: int | None = None) -> V | None:
        """As `put`, unless ``key`` has a value already, which is returned then; None if it has none."""
        before = self.get(key)
        if before is None:
            self.put(key, value, timestamp)
        return before

    def put_all(self, entries: Iterable[tuple[K, V | None]], timestamp: int | None = None) -> None:
        """`put` of each key and value."""
        for key, value in entries:
            self.put(key, value, timestamp)

    def delete(self, key: K) -> None:
        """Remove ``key``."""
        self.put(key, None)

    def all(self) -> Iterator[tuple[K, V]]:
        """Every key and value."""
        return self._typed(self.scan())

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """As `all`, from the last key to the first."""
        return self._typed(reversed(self.scan()))

    def range(self, lower: K | None = None, upper: K | None = None) -> Iterator[tuple[K, V]]:
        """Keys from ``lower`` to ``upper``, both included; None is no bound."""
        return self._typed(self.scan(*self._bounds(lower, upper)))

    def reverse_range(self, lower: K | None = None, upper: K | None = None) -> Iterator[tuple[K, V]]:
        """As `range`, from the last key to the first (KIP-617)."""
        return self._typed(reversed(self.scan(*self._bounds(lower, upper))))

    def prefix_scan(self, prefix: Any, serde: SerdeLike | None = None) -> Iterator[tuple[K, V]]:
        """The keys whose bytes begin with those of ``prefix``, which ``serde`` writes, the keys' own unless
        given (KIP-614).
        """
        begin = (serde_for(serde) or self.spec.key_serde).serialize(prefix)
        return self._typed(self.scan(begin, _behind(begin)))

    def _bounds(self, lower: K | None, upper: K | None) -> tuple[bytes | None, bytes | None]:
        serialize = self.spec.key_serde.serialize
        return (
            None if lower is None else serialize(lower),
            None if upper is None else serialize(upper) + b"\x00",
        )

    def _typed(self, found: Iterable[tuple[bytes, Any, int]]) -> Iterator[tuple[K, V]]:
        deserialize = self.spec.key_serde.deserialize
        return ((deserialize(key), value) for key, value, _ in found)


def _behind(prefix: bytes) -> bytes | None:
    """The first bytes that are behind all that begin with the prefix; None if there are none."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes((short[-1] + 1,)) if short else None
