"""Zigzag varints, as records use them: small numbers of either sign take one byte.

`reader` and `writer` have their own, compiled; these are for the few numbers outside of records.
"""

from __future__ import annotations

from kafka_client.errors import CorruptRecordBatch


def varint(value: int) -> bytes:
    """Return `value` zigzag-encoded, 1 to 10 bytes. Raises OverflowError beyond int64."""
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{value} does not fit int64")
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_zigzag(buffer: bytes, pos: int) -> tuple[int, int]:
    """Return the number at `pos` and the position after it. The number is still zigzag-encoded.

    Even is 2n, odd is -2n - 1.
    Raises IndexError past the end, and CorruptRecordBatch beyond ten bytes.
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
