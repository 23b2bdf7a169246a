"""Protobuf messages of a generated class (the extra ``protobuf``), plain, without a registry."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from streams.serdes.base import Serde


class Message(Protocol):
    """What of a generated class is used."""

    def SerializeToString(self) -> bytes: ...

    def ParseFromString(self, data: bytes, /) -> Any: ...


M = TypeVar("M", bound=Message)


class Protobuf(Serde[M]):
    """The binary form of one message type."""

    def __init__(self, message: type[M]) -> None:
        if not is_message(message):
            raise TypeError(f"Protobuf takes a class that protoc has generated, not {message!r}")
        self.message = message

    def serialize(self, value: M) -> bytes:
        if not isinstance(value, self.message):
            raise TypeError(f"expected {self.message.__name__}, got {type(value).__name__}")
        return value.SerializeToString()

    def deserialize(self, data: bytes) -> M:
        value = self.message()
        try:
            value.ParseFromString(data)
        except Exception as error:  # google.protobuf.message.DecodeError, which is no ValueError
            raise ValueError(f"{len(data)} bytes are no {self.message.__name__}: {error}") from error
        return value

    def __repr__(self) -> str:
        return f"Protobuf({self.message.__name__})"


def is_message(type_: object) -> bool:
    """Return True if this is a class that protoc has generated; without an import of the library."""
    return (
        isinstance(type_, type)
        and hasattr(cast(Any, type_), "ParseFromString")
        and hasattr(type_, "DESCRIPTOR")
    )
