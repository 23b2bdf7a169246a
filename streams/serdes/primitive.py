"""Serdes in the byte formats of Kafka's own: string, bytes, long, integer, double, boolean, uuid."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from uuid import UUID

from streams.serdes.base import Serde

_LONG = struct.Struct(">q")
_INTEGER = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_DOUBLE = struct.Struct(">d")
_FLOAT = struct.Struct(">f")


class String(Serde[str]):
    """UTF-8 text."""

    immutable = True

    serialize = staticmethod(str.encode)  # type: ignore[assignment]  # a wrapping method would double the cost

    def deserialize(self, data: bytes) -> str:
        return str(data, "utf-8")

    def deserialize_many(self, data: Sequence[bytes | None]) -> list[str | None]:
        return [None if each is None else each.decode() for each in data]


class Bytes(Serde[bytes]):
    """Bytes, unchanged."""

    immutable = True

    def serialize(self, value: bytes) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"expected bytes, got {type(value).__name__}")
        return value

    def deserialize(self, data: bytes) -> bytes:
        return data

    def deserialize_many(self, data: Sequence[bytes | None]) -> list[bytes | None]:
        return list(data)


class _Packed(Serde[int]):
    """A signed integer of fixed width, big-endian."""

    immutable = True
    _layout: struct.Struct

    def serialize(self, value: int) -> bytes:
        try:
            return self._layout.pack(value)
        except struct.error as error:
            raise ValueError(str(error)) from None

    def deserialize(self, data: bytes) -> int:
        if len(data) != self._layout.size:
            raise ValueError(f"expected {self._layout.size} bytes, got {len(data)}")
        (value,) = self._layout.unpack(data)
        return int(value)


class Long(_Packed):
    """64-bit signed integer, big-endian: Kafka's Long."""

    _layout = _LONG


class Integer(_Packed):
    """32-bit signed integer, big-endian: Kafka's Integer."""

    _layout = _INTEGER


class Short(_Packed):
    """16-bit signed integer, big-endian: Kafka's Short."""

    _layout = _SHORT


class _Floating(Serde[float]):
    """A floating-point number of fixed width, big-endian."""

    immutable = True
    _layout: struct.Struct

    def serialize(self, value: float) -> bytes:
        try:
            return self._layout.pack(value)
        except struct.error as error:
            raise ValueError(str(error)) from None

    def deserialize(self, data: bytes) -> float:
        if len(data) != self._layout.size:
            raise ValueError(f"expected {self._layout.size} bytes, got {len(data)}")
        (value,) = self._layout.unpack(data)
        return float(value)


class Double(_Floating):
    """IEEE 754 double, big-endian: Kafka's Double."""

    _layout = _DOUBLE


class Float(_Floating):
    """IEEE 754 single precision, big-endian: Kafka's Float."""

    _layout = _FLOAT


class Boolean(Serde[bool]):
    """A byte, 0 or 1."""

    immutable = True

    def serialize(self, value: bool) -> bytes:
        return b"\x01" if value else b"\x00"

    def deserialize(self, data: bytes) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise ValueError(f"expected one byte, 0 or 1, got {data!r}")
        return data == b"\x01"


class Uuid(Serde[UUID]):
    """A UUID as its 36 characters, as Kafka writes it."""

    immutable = True

    def serialize(self, value: UUID) -> bytes:
        return str(value).encode()

    def deserialize(self, data: bytes) -> UUID:
        return UUID(str(data, "ascii"))
