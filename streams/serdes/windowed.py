"""Windows, windowed keys and their serde (Kafka's TimeWindowedSerde).

key bytes ... | int64 window start, ms
"""

from __future__ import annotations

import struct
from typing import Generic, NamedTuple, TypeVar

from streams.serdes.base import Serde

K = TypeVar("K")

_START = struct.Struct(">q")


class Window(NamedTuple):
    """The half-open span ``[start, end)``, milliseconds since the epoch."""

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """A key within a window: what a windowed table is keyed by."""

    key: K
    window: Window


class TimeWindowed(Serde[Windowed[K]]):
    """Windowed keys of one inner serde and one window size (the end is not written)."""

    def __init__(self, inner: Serde[K], size_ms: int) -> None:
        self.inner = inner
        self.size_ms = size_ms

    def serialize(self, value: Windowed[K]) -> bytes:
        return self.inner.serialize(value.key) + _START.pack(value.window.start)

    def deserialize(self, data: bytes) -> Windowed[K]:
        if len(data) < _START.size:
            raise ValueError(f"a windowed key has at least {_START.size} bytes, got {len(data)}")
        (start,) = _START.unpack_from(data, len(data) - _START.size)
        return Windowed(self.inner.deserialize(data[: -_START.size]), Window(start, start + self.size_ms))
