"""The keys of a window store, as Kafka Streams lays them out in store and changelog.

    key bytes ... | int64 window start, ms | int32 sequence number, 0

Starts are not negative, so a key's windows sort by time.
"""

from __future__ import annotations

import struct

SUFFIX = struct.Struct(">qi")


def window_suffix(start: int) -> bytes:
    """What stands behind the key's bytes."""
    return SUFFIX.pack(start, 0)


def window_key(key: bytes, start: int) -> bytes:
    """The bytes a window's value is kept under."""
    return key + SUFFIX.pack(start, 0)


def window_start(stored_key: bytes) -> int:
    """The start (ms) in a stored key."""
    start: int = SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)[0]
    return start


def sequence_number(stored_key: bytes) -> int:
    """The number in a stored key: of several of the same key and start."""
    number: int = SUFFIX.unpack_from(stored_key, len(stored_key) - SUFFIX.size)[1]
    return number
