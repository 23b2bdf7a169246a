"""JSON values through msgspec: any JSON, or checked against a type (Struct, dataclass, TypedDict ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from streams.serdes.base import Serde
from streams.serdes.immutable import is_immutable

T = TypeVar("T")


class Json(Serde[T]):
    """JSON text of one type; a ``msgspec.Struct`` is both the fastest and the most readable."""

    def __init__(self, type: type[T] | Any = Any) -> None:
        self.type = type
        self.immutable = is_immutable(type)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(type).decode

    def serialize(self, value: T) -> bytes:
        return self._encode(value)

    def deserialize(self, data: bytes) -> T:
        value: T = self._decode(data)  # msgspec.DecodeError and ValidationError are ValueErrors
        return value

    def deserialize_many(self, data: Sequence[bytes | None]) -> list[T | None]:
        decode = self._decode
        return [None if each is None else decode(each) for each in data]

    def __repr__(self) -> str:
        return f"Json({getattr(self.type, '__name__', self.type)})"


class MessagePack(Serde[T]):
    """MessagePack of one type: the compact sibling of Json."""

    def __init__(self, type: type[T] | Any = Any) -> None:
        self.type = type
        self.immutable = is_immutable(type)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(type).decode

    def serialize(self, value: T) -> bytes:
        return self._encode(value)

    def deserialize(self, data: bytes) -> T:
        value: T = self._decode(data)
        return value
