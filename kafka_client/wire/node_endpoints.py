"""The addresses of leaders in error responses of Produce (10+) and Fetch (16+), in a tagged field at the end.

A client that sent its request to the wrong broker need not request metadata first (KIP-951).

    tags │ tag 0 │ size │ count │ node id  host  port  rack  no tags │ …
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from kafka_client.wire.primitives import array_length, compact_string, nullable_compact_string, uvarint

NodeEndpoint: TypeAlias = tuple[int, str, int, str | None]
"""Node id, host, port, rack."""

_INT32 = struct.Struct(">i")


def node_endpoints_tag(nodes: Sequence[NodeEndpoint]) -> bytes:
    """Return the tagged fields of such a response: none without nodes."""
    if not nodes:
        return b"\0"
    parts = [array_length(len(nodes), flexible=True)]
    for node_id, host, port, rack in nodes:
        parts += (_INT32.pack(node_id), compact_string(host), _INT32.pack(port))
        parts += (nullable_compact_string(rack), b"\0")
    data = b"".join(parts)
    return b"\1\0" + uvarint(len(data)) + data
