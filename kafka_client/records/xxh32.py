"""XXH32, the checksum in lz4's frames, with seed 0.

This module is compiled by Cython. It also runs as plain Python, only slower.

Source: xxHash's doc/xxhash_spec.md, whose names the steps have.
"""

from __future__ import annotations

import struct
from typing import Any

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

_MASK = 0xFFFF_FFFF
P1 = cython.declare(cython.uint, 0x9E37_79B1)
P2 = cython.declare(cython.uint, 0x85EB_CA77)
_PRIME_1 = 0x9E37_79B1
_PRIME_2 = 0x85EB_CA77
_PRIME_3 = 0xC2B2_AE3D
_PRIME_4 = 0x27D4_EB2F
_PRIME_5 = 0x1656_67B1
_STRIPE = 16
_WORDS = struct.Struct("<4I")
_WORD = struct.Struct("<I")


def xxh32(data: bytes | memoryview) -> int:
    """Return the XXH32 of `data`."""
    state = Xxh32()
    state.update(data)
    return state.digest()


class Xxh32:
    """The XXH32 of data that comes in pieces."""

    __slots__ = ("_accumulators", "_rest", "_size")

    def __init__(self) -> None:
        self._accumulators = ((_PRIME_1 + _PRIME_2) & _MASK, _PRIME_2, 0, -_PRIME_1 & _MASK)
        self._rest = b""
        self._size = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take in the next piece."""
        self._size += len(data)
        if self._rest:
            data = self._rest + bytes(data)
        end = len(data) - len(data) % _STRIPE
        self._rest = bytes(data[end:])
        self._accumulators = _accumulate(self._accumulators, bytes(data[:end]))

    def digest(self) -> int:
        """Return the checksum of all pieces up to now."""
        if self._size >= _STRIPE:
            a, b, c, d = self._accumulators
            value = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        else:
            value = _PRIME_5
        value = value + self._size & _MASK
        rest = self._rest
        words = len(rest) // 4 * 4
        for (word,) in _WORD.iter_unpack(rest[:words]):
            value = _rotate(value + word * _PRIME_3, 17) * _PRIME_4 & _MASK
        for byte in rest[words:]:
            value = _rotate(value + byte * _PRIME_5, 11) * _PRIME_1 & _MASK
        value ^= value >> 15
        value = value * _PRIME_2 & _MASK
        value ^= value >> 13
        value = value * _PRIME_3 & _MASK
        return value ^ value >> 16


@cython.cfunc
def _accumulate(accumulators: Any, data: bytes) -> Any:
    """Return the four accumulators after whole stripes of data."""
    a: cython.uint = accumulators[0]
    b: cython.uint = accumulators[1]
    c: cython.uint = accumulators[2]
    d: cython.uint = accumulators[3]
    if cython.compiled:
        pos: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(data)
        place: cython.p_const_uchar = data
        with cython.nogil:
            while pos < end:
                a = _round(a, place, pos)
                b = _round(b, place, pos + 4)
                c = _round(c, place, pos + 8)
                d = _round(d, place, pos + 12)
                pos += 16
        return a, b, c, d
    for w, x, y, z in _WORDS.iter_unpack(data):
        a = a + w * _PRIME_2 & _MASK
        a = (a << 13 | a >> 19) * _PRIME_1 & _MASK
        b = b + x * _PRIME_2 & _MASK
        b = (b << 13 | b >> 19) * _PRIME_1 & _MASK
        c = c + y * _PRIME_2 & _MASK
        c = (c << 13 | c >> 19) * _PRIME_1 & _MASK
        d = d + z * _PRIME_2 & _MASK
        d = (d << 13 | d >> 19) * _PRIME_1 & _MASK
    return a, b, c, d


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _round(accumulator: cython.uint, data: cython.p_const_uchar, pos: cython.Py_ssize_t) -> cython.uint:
    word: cython.uint = data[pos + 3]
    word = word << 8 | data[pos + 2]
    word = word << 8 | data[pos + 1]
    word = word << 8 | data[pos]
    accumulator += word * P2
    return (accumulator << 13 | accumulator >> 19) * P1


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 32 - bits) & _MASK
