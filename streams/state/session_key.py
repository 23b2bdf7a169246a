"""The keys of a session store, as Kafka Streams writes them in store and changelog.

    key bytes ... | int64 session end, ms | int64 session start, ms

Ends come first, so that a key's sessions sort by their ends.
"""

from __future__ import annotations

import struct

SUFFIX = struct.Struct(">qq")


def session_key(key: bytes, start: int, end: int) -> bytes:
    """Return the stored key of a session (start and end in ms)."""
    return key + SUFFIX.pack(end, start)


def session_bounds(stored_key: bytes) -> tuple[int, int]:
    """Return end and start (ms) in a stored key."""
    return SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)


def session_end(stored_key: bytes) -> int:
    """Return the end (ms) in a stored key."""
    return session_bounds(stored_key)[0]
