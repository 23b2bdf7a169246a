"""The keys of a session store, as Kafka Streams lays them out in store and changelog.

    key bytes ... | int64 session end, ms | int64 session start, ms

Ends come first, so that a key's sessions sort by their ends.
"""

from __future__ import annotations

import struct

SUFFIX = struct.Struct(">qq")


def session_key(key: bytes, start: int, end: int) -> bytes:
    """The bytes a session's value is kept under."""
    return key + SUFFIX.pack(end, start)


def session_bounds(stored_key: bytes) -> tuple[int, int]:
    """End and start (ms) in a stored key."""
    return SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)


def session_end(stored_key: bytes) -> int:
    """The end (ms) in a stored key."""
    return session_bounds(stored_key)[0]
