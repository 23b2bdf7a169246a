"""Kafka's hash of keys, by which its clients choose partitions."""

from __future__ import annotations

import struct
from typing import Final

SEED: Final = 0x9747B28C

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_UNPACK = [struct.Struct(f"<{words}I").unpack_from for words in range(16)]


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of `data`, as an unsigned number."""
    length = len(data)
    h = SEED ^ length
    words = length >> 2
    for k in _UNPACK[words](data) if words < len(_UNPACK) else struct.unpack_from(f"<{words}I", data):
        k = k * _M & _MASK
        h = h * _M & _MASK ^ (k ^ k >> 24) * _M & _MASK
    if length & 3:
        h = (h ^ int.from_bytes(data[words << 2 :], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
