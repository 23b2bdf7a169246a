"""Murmur3's 128-bit hash (x64) with Kafka Streams' seed, by which a foreign-key join compares values."""

from __future__ import annotations

import struct

import mmh3

SEED = 104_729

_HASH = struct.Struct(">qq")


def murmur3_128(data: bytes) -> bytes:
    """Return the hash as Kafka writes it: two int64, big-endian."""
    return _HASH.pack(*mmh3.hash64(data, SEED))
