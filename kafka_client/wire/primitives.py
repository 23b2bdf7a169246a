"""The protocol's primitive values, as the generated code needs them.

Unsigned varints carry seven bits a byte, low bits first, and no more than 32 bits in all (KIP-482).
Compact lengths are a varint of length + 1, 0 for null; the old ones are an int16 (strings) or an
int32, -1 for null.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

UVARINTS: Final = [bytes((value,)) for value in range(128)]
"""The varints of one byte."""

ARRAY_LENGTH_MAX: Final = 1_000_000
"""Elements that an array of a message may have, as in Kafka's MessageUtil."""
TAGGED_FIELDS_MAX: Final = 10_000
"""Tagged fields that a struct of a message may have, as in Kafka's MessageUtil."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NULL16 = b"\xff\xff"
_NULL32 = b"\xff\xff\xff\xff"


class Nonsense(Exception):
    """An impossible length or null; the decoder adds message and field."""


FAILURES: Final = (IndexError, struct.error, UnicodeDecodeError, Nonsense)
"""The errors of reading invalid bytes, which are translated into MalformedMessage."""


def uvarint(value: int) -> bytes:
    """Encode `value` as an unsigned varint."""
    if value < 128:
        return UVARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: bytes | memoryview, pos: int) -> tuple[int, int]:
    """Return the value and the position after it. Raises IndexError past the end, Nonsense over 32 bits."""
    value = shift = 0
    while True:
        byte = buffer[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 32:
                break
            return value, pos
        shift += 7
        if shift > 28:
            break
    raise Nonsense("an unsigned varint of more than 32 bits")


def read_tag(buffer: bytes | memoryview, pos: int) -> tuple[int, int, int]:
    """Return a field's tag, its value's size in bytes, and the value's position; `buffer` has all of it."""
    tag, pos = read_uvarint(buffer, pos)
    size, pos = read_uvarint(buffer, pos)
    if size > len(buffer) - pos:
        raise Nonsense(f"tag {tag} of {size} bytes, {len(buffer) - pos} are left")
    return tag, size, pos


def check_length(count: int, smallest: int, left: int) -> None:
    """Raise Nonsense unless an array may have `count` elements of `smallest` bytes each in `left` bytes."""
    if count < 0 or count * smallest > left:
        raise Nonsense(f"an array of {count} elements in {left} bytes")
    if count > ARRAY_LENGTH_MAX:
        raise Nonsense(f"an array of {count} elements, {ARRAY_LENGTH_MAX} are allowed")


def check_tagged(count: int) -> None:
    """Raise Nonsense unless a struct may have `count` tagged fields."""
    if count > TAGGED_FIELDS_MAX:
        raise Nonsense(f"{count} tagged fields, {TAGGED_FIELDS_MAX} are allowed")


def read_tag_count(buffer: bytes | memoryview, pos: int) -> tuple[int, int]:
    """Return (number of tagged fields, position after it). Raises Nonsense if they are too many."""
    count, pos = read_uvarint(buffer, pos)
    check_tagged(count)
    return count, pos


def skip_tagged(buffer: bytes | memoryview, pos: int, count: int) -> int:
    """Return the position after `count` tagged fields. Raises Nonsense if they are too many."""
    check_tagged(count)
    for _ in range(count):
        _, size, pos = read_tag(buffer, pos)
        pos += size
    return pos


def skip_tags(buffer: bytes | memoryview, pos: int) -> int:
    """Return the position after the tagged fields at `pos`, whose count comes first."""
    if not buffer[pos]:
        return pos + 1
    count, pos = read_uvarint(buffer, pos)
    return skip_tagged(buffer, pos, count)


def read_count(view: memoryview, pos: int) -> tuple[int, int]:
    """Return (compact length, -1 for null; position after it)."""
    raw = view[pos]
    if raw < 128:
        return raw - 1, pos + 1
    raw, pos = read_uvarint(view, pos)
    return raw - 1, pos


def read_array(view: memoryview, pos: int, smallest: int, *, flexible: bool) -> tuple[int, int]:
    """Return the number of elements of an array that is not null, and the position of the first.

    Raises Nonsense if fewer than that many elements of `smallest` bytes are left, or if there are too many.
    """
    if flexible:
        count, pos = read_count(view, pos)
    else:
        count, pos = _INT32.unpack_from(view, pos)[0], pos + 4
    check_length(count, smallest, len(view) - pos)
    return count, pos


def read_records(view: memoryview, pos: int, *, flexible: bool) -> tuple[memoryview, int]:
    """Return a view of the bytes behind a length, empty for null, and the position after them."""
    if flexible:
        size, pos = read_count(view, pos)
    else:
        size, pos = _INT32.unpack_from(view, pos)[0], pos + 4
    if size < 0:
        size = 0
    elif size > len(view) - pos:
        raise Nonsense(f"records of {size} bytes, {len(view) - pos} are left")
    return view[pos : pos + size], pos + size


def read_string(view: memoryview, pos: int, *, flexible: bool) -> tuple[str, int]:
    """Return a string and the position after it. Raises Nonsense for null."""
    text, pos = read_nullable_string(view, pos, flexible=flexible)
    if text is None:
        raise Nonsense("null where a string has to be")
    return text, pos


def read_nullable_string(view: memoryview, pos: int, *, flexible: bool) -> tuple[str | None, int]:
    """Return a string or None, and the position after it."""
    if flexible:
        size, pos = read_count(view, pos)
    else:
        size, pos = _INT16.unpack_from(view, pos)[0], pos + 2
    if size < 0:
        return None, pos
    if size > len(view) - pos:
        raise Nonsense(f"a string of {size} bytes, {len(view) - pos} are left")
    return str(view[pos : pos + size], "utf-8"), pos + size


def read_uuid(view: memoryview, pos: int) -> tuple[bytes, int]:
    """Return the 16 bytes of a UUID and the position after them."""
    if len(view) - pos < 16:
        raise Nonsense(f"a uuid in {len(view) - pos} bytes")
    return bytes(view[pos : pos + 16]), pos + 16


def string(value: str) -> bytes:
    """Encode a string with int16 length."""
    data = value.encode()
    return _INT16.pack(len(data)) + data


def nullable_string(value: str | None) -> bytes:
    """Encode a string with int16 length, or null."""
    if value is None:
        return _NULL16
    data = value.encode()
    return _INT16.pack(len(data)) + data


def compact_string(value: str) -> bytes:
    """Encode a string with compact length."""
    data = value.encode()
    size = len(data) + 1
    return (UVARINTS[size] if size < 128 else uvarint(size)) + data


def nullable_compact_string(value: str | None) -> bytes:
    """Encode a string with compact length, or null."""
    return b"\0" if value is None else compact_string(value)


def length(value: Sequence[Any]) -> bytes:
    """Encode the int32 length of bytes or an array."""
    return _INT32.pack(len(value))


def nullable_length(value: Sequence[Any] | None) -> bytes:
    """Encode the int32 length of bytes or an array, or null."""
    return _NULL32 if value is None else _INT32.pack(len(value))


def compact_length(value: Sequence[Any]) -> bytes:
    """Encode the compact length of bytes or an array."""
    return uvarint(len(value) + 1)


def nullable_compact_length(value: Sequence[Any] | None) -> bytes:
    """Encode the compact length of bytes or an array, or null."""
    return b"\0" if value is None else uvarint(len(value) + 1)


def array_length(count: int, flexible: bool) -> bytes:
    """Encode the length of `count` elements or bytes."""
    return uvarint(count + 1) if flexible else _INT32.pack(count)


def uuid(value: bytes) -> bytes:
    """Return sixteen raw bytes, checked, since `struct` would pad or cut them."""
    if len(value) != 16:
        raise ValueError(f"a uuid of {len(value)} bytes")
    return value
