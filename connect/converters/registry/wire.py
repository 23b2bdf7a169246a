"""Confluent's wire format: a zero, the schema's id as int32, and the value."""

from __future__ import annotations

import struct

from connect.errors import DataError

_FRAME = struct.Struct(">bI")


def framed(schema_id: int, data: bytes) -> bytes:
    """Return the bytes of a value, with its schema's id before them."""
    return _FRAME.pack(0, schema_id) + data


def unframed(topic: str, data: bytes) -> tuple[int, bytes]:
    """Return the schema's id and the bytes of the value. Raises DataError if there is no id."""
    if len(data) < _FRAME.size or data[0] != 0:
        raise DataError(
            f"record of topic {topic}: its {len(data)} bytes do not begin with a zero and a schema's id. "
            "Were they written without a schema registry?"
        )
    return int(_FRAME.unpack_from(data)[1]), data[_FRAME.size :]
