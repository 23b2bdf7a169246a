"""A record's key and an id within the key, for stores that detect duplicates.

int32 length of the key | key bytes ... | id bytes ...
"""

from __future__ import annotations

import struct
from typing import Any

from streams.serdes.base import Serde

_LENGTH = struct.Struct(">i")


class KeyAndId(Serde[tuple[Any, Any]]):
    """Pairs of a key and an id, each with a serde of its own."""

    def __init__(self, key: Serde[Any], id: Serde[Any]) -> None:
        self.key, self.id = key, id

    def serialize(self, value: tuple[Any, Any]) -> bytes:
        key = self.key.serialize(value[0])
        return _LENGTH.pack(len(key)) + key + self.id.serialize(value[1])

    def deserialize(self, data: bytes) -> tuple[Any, Any]:
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + length
        if not 0 <= length <= len(data) - _LENGTH.size:
            raise ValueError(f"a key of {length} bytes where {len(data) - _LENGTH.size} are left")
        return self.key.deserialize(data[_LENGTH.size : end]), self.id.deserialize(data[end:])
