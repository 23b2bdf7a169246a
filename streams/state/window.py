"""The window store: one value per key and window start, deleted by stream time (`streams.state.timed`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from streams.serdes import Window, Windowed
from streams.serdes.windowed import FOREVER, Windows, windowed_of
from streams.state.backend import Backend
from streams.state.spec import StoreSpec
from streams.state.timed import TimedStore
from streams.state.window_key import SUFFIX, window_key, window_start

K = TypeVar("K")
V = TypeVar("V")


class WindowStore(TimedStore, Generic[K, V]):
    """A cached store with typed keys, windows and values."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend, window_start, SUFFIX.size)
        self._windows = Windows(spec.window_size_ms)
        self.window_of: Callable[[bytes], Window] = self._windows.__getitem__
        """Returns the window of a stored key's suffix."""
        self.encode_key = self._encode_key
        self.decode_key = self._key_decoder()

    @property
    def oldest_start(self) -> int:
        """The earliest start (ms) of windows that are not expired."""
        return self.oldest

    def get(self, key: K, start: int) -> V | None:
        """Return the value of the window of ``key`` starting at ``start`` ms, None if absent or expired."""
        if start < self.oldest:
            return None
        entry = self.lookup(window_key(self.spec.key_serde.serialize(key), start))
        value: V | None = None if entry is None else entry[0]
        return value

    def put(self, key: K, start: int, value: V | None, timestamp: int | None = None) -> bool:
        """Set a window's value; None deletes it. Return False if the window is expired already."""
        self.stream_time = max(self.stream_time, start)
        self.newest = max(self.newest, start)
        if start < self.oldest:
            return False
        stored_key = window_key(self.spec.key_serde.serialize(key), start)
        self.update(stored_key, value, start if timestamp is None else timestamp)
        return True

    def fetch(self, key: K, start_from: int, start_to: int) -> Iterator[tuple[Window, V]]:
        """Iterate over a key's windows that start within ``[start_from, start_to]`` ms, by time."""
        raw = self.spec.key_serde.serialize(key)
        first = max(start_from, self.oldest, 0)
        for stored_key, value, _ in self.scan(window_key(raw, first), window_key(raw, start_to + 1)):
            if self.key_of(stored_key) == raw:  # a longer key may sort in between
                yield self._windows[stored_key[-SUFFIX.size :]], value

    def backward_fetch(self, key: K, start_from: int, start_to: int) -> Iterator[tuple[Window, V]]:
        """Iterate over the windows of `fetch`, the latest first (KIP-617)."""
        return reversed([*self.fetch(key, start_from, start_to)])

    def fetch_range(
        self, lower: K | None, upper: K | None, start_from: int = 0, start_to: int = FOREVER
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over windows that start within a range, of the keys from ``lower`` to ``upper``, included.

        They are in byte order of key and start; a bound of None is no bound.
        """
        first = max(start_from, self.oldest)
        for stored_key, value in self.scan_keys(lower, upper):
            if first <= window_start(stored_key) <= start_to:
                yield self.decode_key(stored_key), value

    def backward_fetch_range(
        self, lower: K | None, upper: K | None, start_from: int = 0, start_to: int = FOREVER
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the windows of `fetch_range` from the last to the first."""
        return reversed([*self.fetch_range(lower, upper, start_from, start_to)])

    def fetch_all(self, start_from: int, start_to: int) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the windows of all keys that start within ``[start_from, start_to]`` ms."""
        return self.fetch_range(None, None, start_from, start_to)

    def backward_fetch_all(self, start_from: int, start_to: int) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the windows of `fetch_all` from the last to the first."""
        return self.backward_fetch_range(None, None, start_from, start_to)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over all windows that are not expired, in byte order of key and start."""
        return self.fetch_range(None, None)

    def backward_all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Iterate over the windows of `all` from the last to the first."""
        return self.backward_fetch_range(None, None)

    def _encode_key(self, key: Windowed[K]) -> bytes:
        return window_key(self.spec.key_serde.serialize(key.key), key.window.start)

    def _key_decoder(self) -> Callable[[bytes], Windowed[K]]:
        """Return a decoder of stored keys, made fast for the many keys of a commit."""
        deserialize, end, windows = self.spec.key_serde.deserialize, -SUFFIX.size, self._windows
        return lambda stored_key: windowed_of((deserialize(stored_key[:end]), windows[stored_key[end:]]))

    @property
    def oldest(self) -> int:
        # Kafka's store of windows that are emitted on close keeps them for a millisecond more.
        return super().oldest - self.spec.by_time if self.newest >= 0 else 0

    @property
    def _oldest_emitted(self) -> int:
        return self.oldest

    def _order(self, stored_key: bytes) -> Any:
        return window_start(stored_key), stored_key

    def key_of(self, stored_key: bytes) -> bytes:
        return stored_key[: -SUFFIX.size]

    def _place(self, stored_key: bytes) -> int:
        return window_start(stored_key)

    def _first_place(self, time: int) -> int:
        return time
