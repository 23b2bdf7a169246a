"""Whole frames: an int32 length, then header and body.

The reader of a stream splits it into frames; the largest allowed frame is a setting
(`socket.request.max.bytes`).
"""

from __future__ import annotations

import struct
from typing import TypeVar

from kafka_client.errors import MalformedMessage
from kafka_client.wire.compile import decode, decoder, encode
from kafka_client.wire.headers import encode_request_header, encode_response_header
from kafka_client.wire.message import Message

M = TypeVar("M", bound=Message)

LENGTH = struct.Struct(">i")
"""The length field before every request and response: the number of bytes after it."""


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return `message` as one request frame."""
    header = encode_request_header(
        message.API_KEY, version, correlation_id, client_id, flexible=version >= message.FLEXIBLE
    )
    return frame(header, encode(message, version))


def encode_response(message: Message, version: int, correlation_id: int) -> bytes:
    """Return `message` as one response frame."""
    header = encode_response_header(message.API_KEY, correlation_id, flexible=version >= message.FLEXIBLE)
    return frame(header, encode(message, version))


def frame(header: bytes, body: bytes) -> bytes:
    """Return header and body behind their length."""
    return b"".join((LENGTH.pack(len(header) + len(body)), header, body))


def encode_versioned(message: Message, version: int) -> bytes:
    """Return `message` behind its version as int16, the form of group members' metadata."""
    return version.to_bytes(2, "big", signed=True) + encode(message, version)


def decode_versioned(cls: type[M], buffer: bytes | bytearray | memoryview) -> M:
    """Read what `encode_versioned` wrote; a version newer than ours is read as our newest.

    Newer versions of these formats only append fields (KIP-429). Raises MalformedMessage.
    """
    version = int.from_bytes(buffer[:2], "big", signed=True)
    first, last = cls.VERSIONS
    if len(buffer) < 2 or version < first:
        raise MalformedMessage(f"{cls.__name__}: no version, or one before {first}")
    return decode(cls, min(version, last), buffer, 2)


def decode_exactly(cls: type[M], version: int, buffer: bytes, pos: int = 0) -> M:
    """Read a message that has to end where `buffer` ends; MalformedMessage otherwise."""
    message, end = decoder(cls, version)(buffer, pos)
    if end != len(buffer):
        raise MalformedMessage(f"{cls.__name__} v{version}: {len(buffer) - end} bytes after its end")
    return message
