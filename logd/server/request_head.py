"""The head of a request, as fields for the log's messages about it."""

from __future__ import annotations

import mmap
import struct

_HEAD = struct.Struct(">hhi")


def head_of(buffer: bytearray | mmap.mmap, start: int, end: int) -> bytes:
    """Return the first bytes of the request in ``buffer[start:end]``, all that `head_fields` needs."""
    return bytes(buffer[start : min(end, start + _HEAD.size)])


def head_fields(head: bytes) -> dict[str, int]:
    """Return the API key, version and correlation id of a request; nothing for one that is shorter."""
    if len(head) < _HEAD.size:
        return {}
    return dict(zip(("api_key", "api_version", "correlation_id"), _HEAD.unpack(head), strict=True))
