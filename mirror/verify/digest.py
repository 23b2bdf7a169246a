"""A rolling digest of a partition's records, in order: key, value, headers and timestamp, not offsets.

    record   timestamp i64 │ key length i32 │ value length i32 │ header count i32 │ key │ value │ headers
    header   name length i32 │ value length i32 │ name │ value                    (length -1: null)

The digest is BLAKE2b-128 over all records; its value so far is stored after every `RANGE` records. It does
not depend on how records are batched, compressed or numbered: logs with equal records have equal digests.
After the first difference between two logs all stored values differ, so bisection finds its range.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from hashlib import blake2b

from kafka_client.records import Headers, Record

RANGE = 4096
"""Number of records in a range."""
SIZE = 16

_RECORD = struct.Struct(">qiii")
_HEADER = struct.Struct(">ii")


class PartitionDigest:
    """Digest of one partition, built up record by record.

    `offsets[i]` is the offset of range i's first record, `ranges[i]` the digest of everything up to the
    range's end. Call `finish` at the end.
    """

    def __init__(self) -> None:
        self.count = 0
        self.ranges: list[bytes] = []
        self.offsets: list[int] = []
        self._hash = blake2b(digest_size=SIZE)

    def add(self, records: Sequence[Record]) -> None:
        """Add the next records, in offset order."""
        begin = 0
        while begin < len(records):
            into = self.count % RANGE
            if not into:
                self.offsets.append(records[begin][0])
            part = records[begin : begin + RANGE - into]
            self._hash.update(canonical(part))
            self.count += len(part)
            begin += len(part)
            if not self.count % RANGE:
                self.ranges.append(self._hash.digest())

    def finish(self) -> str:
        """Return the digest of all records, in hex. Add no records after this call."""
        if len(self.ranges) < len(self.offsets):
            self.ranges.append(self._hash.digest())
        return self._hash.hexdigest()


def first_different_range(ours: PartitionDigest, theirs: PartitionDigest) -> int:
    """Return the index of the range with the first difference. The digests are finished and not equal."""
    both = min(len(ours.ranges), len(theirs.ranges))
    return bisect_left(range(both), True, key=lambda i: ours.ranges[i] != theirs.ranges[i])


def canonical(records: Sequence[Record]) -> bytes:
    """Return the bytes that are hashed for these records."""
    pack = _RECORD.pack
    parts: list[bytes] = []
    for _, timestamp, key, value, headers in records:
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        parts += (pack(timestamp, key_size, value_size, len(headers)), key or b"", value or b"")
        if headers:
            parts.append(_canonical_headers(headers))
    return b"".join(parts)


def _canonical_headers(headers: Headers) -> bytes:
    parts: list[bytes] = []
    for name, value in headers:
        encoded = name.encode()
        parts += (_HEADER.pack(len(encoded), -1 if value is None else len(value)), encoded, value or b"")
    return b"".join(parts)
