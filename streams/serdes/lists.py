"""Lists in the format of Kafka's ListSerde (KIP-466).

Values of a fixed size, such as Long:      0 | int32 nulls | int32 index of each | int32 count | values
Others, such as String:                    1 | int32 count | int32 size, -1 for null, and bytes of each
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

from streams.serdes.base import Serde
from streams.serdes.primitive import Double, Float, Integer, Long, Short, Uuid

T = TypeVar("T")

_INT = struct.Struct(">i")
_SIZES: dict[type[Serde[object]], int] = {Short: 2, Integer: 4, Float: 4, Long: 8, Double: 8, Uuid: 36}  # type: ignore[dict-item]
"""Serdes whose values all have one size, in bytes, according to Kafka."""


class ListOf(Serde["list[T | None]"]):
    """Lists of one inner serde's values; None may be among them."""

    def __init__(self, inner: Serde[T]) -> None:
        self.inner = inner
        self._size = _SIZES.get(type(inner))  # type: ignore[arg-type]

    def serialize(self, value: Sequence[T | None]) -> bytes:
        data = [None if each is None else self.inner.serialize(each) for each in value]
        return _variable(data) if self._size is None else _fixed(data, self._size)

    def deserialize(self, data: bytes) -> list[T | None]:
        fixed, expected = data[:1] == b"\x00", 0 if self._size is not None else 1
        if not data or data[0] != expected:
            raise ValueError(
                f"a list of {type(self.inner).__name__} begins with {expected}, not {data[:1]!r}"
            )
        try:
            parts = _read_fixed(data, self._size or 0) if fixed else _read_variable(data)
        except struct.error as error:
            raise ValueError(f"a list of {type(self.inner).__name__} ends too soon: {error}") from error
        return [None if each is None else self.inner.deserialize(each) for each in parts]


def _fixed(data: list[bytes | None], size: int) -> bytes:
    nulls = [index for index, each in enumerate(data) if each is None]
    head = struct.pack(f">bi{len(nulls)}ii", 0, len(nulls), *nulls, len(data))
    return head + b"".join(each for each in data if each is not None)


def _variable(data: list[bytes | None]) -> bytes:
    parts = [struct.pack(">bi", 1, len(data))]
    for each in data:
        parts += [_INT.pack(-1)] if each is None else [_INT.pack(len(each)), each]
    return b"".join(parts)


def _read_fixed(data: bytes, size: int) -> list[bytes | None]:
    count_of_nulls, at = *_INT.unpack_from(data, 1), 5
    nulls = set(struct.unpack_from(f">{count_of_nulls}i", data, at))
    at += 4 * count_of_nulls
    (count,) = _INT.unpack_from(data, at)
    at += 4
    parts: list[bytes | None] = []
    for index in range(count):
        if index in nulls:
            parts.append(None)
        else:
            parts.append(_slice(data, at, size))
            at += size
    return parts


def _read_variable(data: bytes) -> list[bytes | None]:
    (count,), at = _INT.unpack_from(data, 1), 5
    parts: list[bytes | None] = []
    for _ in range(count):
        (size,) = _INT.unpack_from(data, at)
        at += 4
        if size < 0:
            parts.append(None)
        else:
            parts.append(_slice(data, at, size))
            at += size
    return parts


def _slice(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise struct.error(f"{len(part)} of {size} bytes at {at}")
    return part
