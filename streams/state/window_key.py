"""The keys of a window store, as Kafka Streams writes them in store and changelog.

    key bytes ... | int64 window start, ms | int32 sequence number, 0

Starts are not negative, so a key's windows sort by time.
"""

from __future__ import annotations

import struct

SUFFIX = struct.Struct(">qi")


def window_suffix(start: int) -> bytes:
    """Return the bytes that follow the key's bytes in a stored key; ``start`` in ms."""
    return SUFFIX.pack(start, 0)


def window_key(key: bytes, start: int) -> bytes:
    """Return the stored key of a window that starts at ``start`` ms."""
    return key + SUFFIX.pack(start, 0)


def window_start(stored_key: bytes) -> int:
    """Return the start (ms) in a stored key."""
    start: int = SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)[0]
    return start


def sequence_number(stored_key: bytes) -> int:
    """Return the sequence number that tells apart stored records with the same key and start."""
    number: int = SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)[1]
    return number
