"""Request and response headers.

    request   api key i16 │ version i16 │ correlation id i32      version 0
              │ client id, nullable string (int16 length always)  version 1
              │ tagged fields                                     version 2, flexible requests
    response  correlation id i32                                  version 0
              │ tagged fields                                     version 1, flexible responses

ApiVersions' response header is version 0 always: a client that does not know the broker's versions
yet has to be able to read it (KIP-511).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka_client.errors import MalformedMessage
from kafka_client.wire import primitives
from kafka_client.wire.api_keys import ApiKey, is_flexible
from kafka_client.wire.primitives import FAILURES, Nonsense

_REQUEST = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """Who asks for what; the request's body begins at position `body`."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: int


def decode_request_header(buffer: bytes | bytearray | memoryview, pos: int = 0) -> RequestHeader:
    """Read the header of the request (without its length prefix) at `pos`.

    Of an API that is not known only the fixed fields and the client id are read: nobody knows
    whether it has tagged fields. Raises MalformedMessage.
    """
    try:
        api_key, version, correlation_id, size = _REQUEST.unpack_from(buffer, pos)
        pos += _REQUEST.size
        client_id: str | None = None
        if size >= 0:
            if size > len(buffer) - pos:
                raise Nonsense(f"a client id of {size} bytes, {len(buffer) - pos} are left")
            client_id = str(buffer[pos : pos + size], "utf-8")
            pos += size
        if is_flexible(api_key, version):
            pos = primitives.skip_tags(memoryview(buffer), pos)
    except FAILURES as error:
        raise MalformedMessage(f"request header: {error}") from None
    return RequestHeader(api_key, version, correlation_id, client_id, pos)


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool
) -> bytes:
    """Return the header of a request: version 2 if the request is flexible, else 1."""
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    return _REQUEST.pack(api_key, version, correlation_id, size) + name + (b"\0" if flexible else b"")


def decode_response_header(
    api_key: int, version: int, buffer: bytes | bytearray | memoryview, pos: int = 0
) -> tuple[int, int]:
    """Return the correlation id of a response to an `api_key` request, and the position of its body.

    Raises MalformedMessage.
    """
    try:
        correlation_id = int(_CORRELATION.unpack_from(buffer, pos)[0])
        pos += _CORRELATION.size
        if api_key != ApiKey.API_VERSIONS and is_flexible(api_key, version):
            pos = primitives.skip_tags(memoryview(buffer), pos)
    except FAILURES as error:
        raise MalformedMessage(f"response header: {error}") from None
    return correlation_id, pos


def encode_response_header(api_key: int, correlation_id: int, *, flexible: bool) -> bytes:
    """Return the header of a response: version 1 if the response is flexible and not ApiVersions', else 0."""
    header = _CORRELATION.pack(correlation_id)
    return header + b"\0" if flexible and api_key != ApiKey.API_VERSIONS else header


def skip_tags(buffer: bytes | bytearray | memoryview, pos: int) -> int:
    """Return the position after the tagged fields at `pos`; raises MalformedMessage if they do not end."""
    try:
        return primitives.skip_tags(memoryview(buffer), pos)
    except FAILURES as error:
        raise MalformedMessage(f"tagged fields: {error}") from None
