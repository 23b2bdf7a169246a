"""A window's start and the window's value.

int64 start, ms | value bytes ...
"""

from __future__ import annotations

import struct
from typing import Any

from streams.serdes.base import Serde

_START = struct.Struct(">q")


class StartAndValue(Serde[tuple[int, Any]]):
    """Pairs of a window's start (ms) and a value of the inner serde."""

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.immutable = inner.immutable

    def serialize(self, value: tuple[int, Any]) -> bytes:
        return _START.pack(value[0]) + self.inner.serialize(value[1])

    def deserialize(self, data: bytes) -> tuple[int, Any]:
        if len(data) < _START.size:
            raise ValueError(f"a window's start takes {_START.size} bytes, and there are {len(data)}")
        return _START.unpack_from(data)[0], self.inner.deserialize(data[_START.size :])
