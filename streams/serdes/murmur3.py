"""Murmur3's 128-bit hash (x64), seeded as Kafka Streams does: a foreign-key join knows values again by it."""

from __future__ import annotations

import struct

SEED = 104_729

_BLOCK = struct.Struct("<QQ")
_HASH = struct.Struct(">QQ")
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_C1 = 0x87C3_7B91_1142_53D5
_C2 = 0x4CF5_AD43_2745_937F


def murmur3_128(data: bytes) -> bytes:
    """The hash, as Kafka writes it: two int64, big-endian."""
    h1 = h2 = SEED
    whole = len(data) & ~15
    for k1, k2 in _BLOCK.iter_unpack(memoryview(data)[:whole]):
        h1 = (_rotated(h1 ^ _mixed_1(k1), 27) + h2) * 5 + 0x52DC_E729 & _MASK
        h2 = (_rotated(h2 ^ _mixed_2(k2), 31) + h1) * 5 + 0x3849_5AB5 & _MASK
    k1, k2 = _BLOCK.unpack(data[whole:].ljust(16, b"\x00"))  # an empty tail changes nothing
    h1 ^= _mixed_1(k1) ^ len(data)
    h2 ^= _mixed_2(k2) ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _finished(h1), _finished(h2)
    h1 = h1 + h2 & _MASK
    return _HASH.pack(h1, h2 + h1 & _MASK)


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _mixed_1(k1: int) -> int:
    return _rotated(k1 * _C1 & _MASK, 31) * _C2 & _MASK


def _mixed_2(k2: int) -> int:
    return _rotated(k2 * _C2 & _MASK, 33) * _C1 & _MASK


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51_AFD7_ED55_8CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CE_B9FE_1A85_EC53 & _MASK
    return value ^ value >> 33
