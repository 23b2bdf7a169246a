"""Zigzag varints, as records use them: small numbers of either sign take one byte.

`build` takes small values from the table; `decode` inlines the short cases and calls `read_zigzag`
for the rest.
"""

from __future__ import annotations

from typing import Final

from logd.errors import CorruptRecordBatch


def varint(value: int) -> bytes:
    """`value` zigzag-encoded, 1 to 10 bytes; a value beyond int64 is an OverflowError."""
    if 0x2000 <= value < 0x10_0000:  # times that are some seconds or minutes apart
        return bytes((value << 1 & 0x7F | 0x80, value >> 6 & 0x7F | 0x80, value >> 13))
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{value} does not fit int64")
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return rest.to_bytes(1, "big")
    if rest < 0x4000:
        return bytes((rest & 0x7F | 0x80, rest >> 7))
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_zigzag(buffer: bytes, pos: int) -> tuple[int, int]:
    """(the number still zigzag-encoded, position after it): even is 2n, odd is -2n - 1.

    IndexError past the end; CorruptRecordBatch beyond ten bytes.
    """
    raw = shift = 0
    while True:
        byte = buffer[pos]
        pos += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFF_FFFF_FFFF_FFFF, pos
        shift += 7
        if shift > 63:
            raise CorruptRecordBatch("a varint of more than ten bytes")


TABLE_SIZE: Final = 8192
"""Values below travel in at most two bytes."""
# Made of their bytes, which is ten times as fast as one by one: importing this should not take time.
_LOW: Final = [bytes((2 * value | 0x80,)) for value in range(64)]
TABLE: Final = [bytes((2 * value,)) for value in range(64)] + [
    low + bytes((high,)) for high in range(1, TABLE_SIZE // 64) for low in _LOW
]
