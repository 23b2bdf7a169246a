"""The window store: one value per key and window start, forgotten by stream time.

Expiry is by the store's own stream time and, as in Kafka Streams, by segments (`streams.state.segments`). It
writes tombstones to the changelog, a bounded number with each commit: retention by the broker's clock
would delete historical windows in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from streams.serdes import Window, Windowed
from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.segments import SegmentedBackend, segment_ms_for
from streams.state.spec import StoreSpec
from streams.state.window_key import SUFFIX, window_key, window_start

K = TypeVar("K")
V = TypeVar("V")

EXPIRED_WINDOWS_MAX = 10_000
"""So many windows are deleted with one commit, or twice as many as the commit changes if that is more."""


class WindowStore(CachedStore, Generic[K, V]):
    """Typed reading and writing of windows over the cache."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        self._segments = SegmentedBackend(backend, segment_ms_for(spec.retention_ms))
        super().__init__(spec, self._segments)
        self.stream_time = -1
        """Highest timestamp seen, ms; -1 before the first. Committed with the task's positions."""
        self._live_from = 0
        self._all_expired = True
        self.encode_key = self._encode_key
        self.decode_key = self._decode_key

    @property
    def oldest_start(self) -> int:
        """Windows that start before this (ms) are forgotten."""
        return self.stream_time - self.spec.retention_ms + 1 if self.stream_time >= 0 else 0

    def get(self, key: K, start: int) -> V | None:
        """Return the value of the window of ``key`` starting at ``start`` ms, None if absent or expired."""
        if start < self.oldest_start:
            return None
        entry = self.lookup(window_key(self.spec.key_serde.serialize(key), start))
        value: V | None = None if entry is None else entry[0]
        return value

    def put(self, key: K, start: int, value: V | None, timestamp: int | None = None) -> bool:
        """Set a window; a value of None deletes it. False if the window is expired already."""
        self.stream_time = max(self.stream_time, start)
        if start < self.oldest_start:
            return False
        stored_key = window_key(self.spec.key_serde.serialize(key), start)
        self.update(stored_key, value, start if timestamp is None else timestamp)
        return True

    def fetch(self, key: K, start_from: int, start_to: int) -> Iterator[tuple[Window, V]]:
        """Windows of one key that start within ``[start_from, start_to]`` ms, by time."""
        raw = self.spec.key_serde.serialize(key)
        first = max(start_from, self.oldest_start, 0)
        for stored_key, value, _ in self.scan(window_key(raw, first), window_key(raw, start_to + 1)):
            # A longer key may sort in between.
            if len(stored_key) == len(raw) + SUFFIX.size and stored_key.startswith(raw):
                yield self._window(window_start(stored_key)), value

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Every window not expired, in byte order of key and start."""
        oldest = self.oldest_start
        for stored_key, value, _ in self.scan():
            if window_start(stored_key) >= oldest:
                yield self._decode_key(stored_key), value

    def _encode_key(self, key: Windowed[K]) -> bytes:
        return window_key(self.spec.key_serde.serialize(key.key), key.window.start)

    def _decode_key(self, stored_key: bytes) -> Windowed[K]:
        key = self.spec.key_serde.deserialize(stored_key[: -SUFFIX.size])
        return Windowed(key, self._window(window_start(stored_key)))

    def _window(self, start: int) -> Window:
        return Window(start, start + self.spec.window_size_ms)

    def drain(self) -> None:
        before = len(self.pending)
        super().drain()
        self._expire(max(EXPIRED_WINDOWS_MAX, 2 * (len(self.pending) - before)))

    def _expire(self, limit: int) -> None:
        """Tombstones for up to ``limit`` windows of segments that are wholly past retention."""
        live_from = max(self.oldest_start, 0) // self._segments.segment_ms
        if live_from > self._live_from:
            self._live_from, self._all_expired = live_from, False
            start = live_from * self._segments.segment_ms
            self._delete([key for key in self.pending if window_start(key) < start])
        if not self._all_expired:
            expired = self._segments.take_expired(live_from, limit=limit)
            self._all_expired = len(expired) < limit
            self._delete(expired)

    def _delete(self, keys: list[bytes]) -> None:
        for key in keys:
            self.pending[key] = (None, self.stream_time)
            self._entries.set_absent(key)
        self._changed = None
