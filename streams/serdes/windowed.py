"""Windows, windowed keys and their serdes: Kafka's TimeWindowedSerde

    key bytes ... | int64 window start, ms

and SessionWindowedSerde:

    key bytes ... | int64 session end, ms | int64 session start, ms
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from streams.serdes.base import Serde

K = TypeVar("K")

_START = struct.Struct(">q")
_BOUNDS = struct.Struct(">qq")

FOREVER = 2**63 - 1
"""The end of unlimited windows, ms: Kafka's Long.MAX_VALUE."""


class Window(NamedTuple):
    """A span of time, ms since the epoch; the end of sessions and sliding windows is inclusive."""

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """A key within a window: the key of a windowed table."""

    key: K
    window: Window


windowed_of = partial(tuple.__new__, Windowed)
"""Returns a `Windowed` of a pair of key and window, without the cost of its constructor."""
WINDOWS_MAX = 1000
"""The most windows in memory; when there are as many, all of them are dropped."""


class Windows(dict[bytes, Window]):
    """Windows of one size by the bytes that begin with their starts, because many keys have few windows.

    A lookup adds a missing window. Raises ValueError for too few bytes.
    """

    def __init__(self, size_ms: int) -> None:
        super().__init__()
        self._size_ms = size_ms

    def __missing__(self, suffix: bytes) -> Window:
        if len(suffix) < _START.size:
            raise ValueError(f"a windowed key has at least {_START.size} bytes, got {len(suffix)}")
        (start,) = _START.unpack_from(suffix)
        if len(self) >= WINDOWS_MAX:
            self.clear()
        window = self[suffix] = Window(start, min(start + self._size_ms, FOREVER))
        return window


class TimeWindowed(Serde[Windowed[K]]):
    """Windowed keys of one inner serde and one window size; the end is not written."""

    def __init__(self, inner: Serde[K], size_ms: int) -> None:
        self.inner = inner
        self.immutable = inner.immutable
        self.size_ms = size_ms
        self._windows = Windows(size_ms)

    def of_topic(self, topic: str, *, is_key: bool) -> TimeWindowed[K]:
        """Return the serde with the inner serde bound to the topic."""
        return TimeWindowed(self.inner.of_topic(topic, is_key=is_key), self.size_ms)

    def serialize(self, value: Windowed[K]) -> bytes:
        return self.inner.serialize(value.key) + _START.pack(value.window.start)

    def deserialize(self, data: bytes) -> Windowed[K]:
        window = self._windows[data[-_START.size :]]
        return windowed_of((self.inner.deserialize(data[: -_START.size]), window))


class SessionWindowed(Serde[Windowed[K]]):
    """Keys of sessions, with one inner serde."""

    def __init__(self, inner: Serde[K]) -> None:
        self.inner = inner
        self.immutable = inner.immutable

    def of_topic(self, topic: str, *, is_key: bool) -> SessionWindowed[K]:
        """Return the serde with the inner serde bound to the topic."""
        return SessionWindowed(self.inner.of_topic(topic, is_key=is_key))

    def serialize(self, value: Windowed[K]) -> bytes:
        return self.inner.serialize(value.key) + _BOUNDS.pack(value.window.end, value.window.start)

    def deserialize(self, data: bytes) -> Windowed[K]:
        if len(data) < _BOUNDS.size:
            raise ValueError(f"a session's key has at least {_BOUNDS.size} bytes, got {len(data)}")
        end, start = _BOUNDS.unpack_from(data, len(data) - _BOUNDS.size)
        return Windowed(self.inner.deserialize(data[: -_BOUNDS.size]), Window(start, end))
