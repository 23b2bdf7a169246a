"""The window store: one value per key and window start, forgotten by stream time.

    key bytes ... | int64 window start, ms | int32 sequence number, 0

is the key's layout in the backend and in the changelog, as in Kafka Streams. Starts are not negative, so a
key's windows sort by time. Expiry is by the store's own stream time, in steps of a segment as Kafka Streams
does it, and writes tombstones: retention by the broker's clock would delete historical windows in use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

from streams.serdes import Window, Windowed
from streams.state.backend import Backend
from streams.state.cache import CachedStore
from streams.state.spec import StoreSpec

K = TypeVar("K")
V = TypeVar("V")

SUFFIX = struct.Struct(">qi")
SEGMENT_MIN_MS = 60_000


def window_key(key: bytes, start: int) -> bytes:
    """The bytes a window's value is kept under."""
    return key + SUFFIX.pack(start, 0)


def window_start(stored_key: bytes) -> int:
    """The start (ms) in a stored key."""
    start: int = SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)[0]
    return start


class WindowStore(CachedStore, Generic[K, V]):
    """Typed reading and writing of windows over the cache."""

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self.stream_time = -1
        """Highest timestamp seen, ms; -1 before the first. Committed with the task's positions."""
        self.segment_ms = max(spec.retention_ms // 2, SEGMENT_MIN_MS)
        self._expired_at = -1
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
        super().drain()
        segment = self.oldest_start // self.segment_ms
        if segment > self._expired_at and self.oldest_start > 0:
            self._expire()
            self._expired_at = segment

    def _expire(self) -> None:
        """Tombstones for what is past retention: one pass per segment of stream time, not per record."""
        oldest = self.oldest_start
        kept = {key for key, _ in self.backend.scan() if window_start(key) < oldest}
        kept.update(key for key in self.pending if window_start(key) < oldest)
        for key in kept:
            self.pending[key] = (None, self.stream_time)
            self._entries[key] = None
