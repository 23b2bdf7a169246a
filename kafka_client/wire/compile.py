"""Conversion of messages to bytes and back: the encoder and decoder of each class and version, made at
first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafka_client.wire.decoder import compile_decoder
from kafka_client.wire.encoder import compile_encoder
from kafka_client.wire.message import Message

M = TypeVar("M", bound=Message)

_encoders: dict[tuple[type[Message], int], Callable[[Any], bytes]] = {}
_decoders: dict[tuple[type[Message], int], Callable[[bytes, int], tuple[Any, int]]] = {}


def encoder(cls: type[M], version: int) -> Callable[[M], bytes]:
    """Return the function that turns a `cls` into its bytes at `version`.

    The function raises ValueError, naming the field, for a value that the version cannot express. Fields that
    the version does not have are silently left out.
    """
    try:
        return _encoders[cls, version]
    except KeyError:
        _check_version(cls, version)
        return _encoders.setdefault((cls, version), compile_encoder(cls, version))


def decoder(cls: type[M], version: int) -> Callable[[bytes, int], tuple[M, int]]:
    """Return the function that reads a `cls` at `version` from (bytes, position): (message, position after
    it).

    The function raises MalformedMessage, naming the field. Bytes after the message are for the caller to
    check.
    """
    try:
        return _decoders[cls, version]
    except KeyError:
        _check_version(cls, version)
        return _decoders.setdefault((cls, version), compile_decoder(cls, version))


def encode(message: Message, version: int) -> bytes:
    """Return the bytes of `message` at `version`; see `encoder`."""
    return encoder(type(message), version)(message)


def decode(cls: type[M], version: int, buffer: bytes | bytearray | memoryview, pos: int = 0) -> M:
    """Read a `cls` at `version` from `buffer`; see `decoder`. Bytes after the message are ignored."""
    data = buffer if isinstance(buffer, bytes) else bytes(buffer)
    return decoder(cls, version)(data, pos)[0]


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise ValueError(f"{cls.__name__} has versions {first} to {last}, not {version}")
