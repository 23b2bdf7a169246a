"""A versioned store's bytes: versions by key, and an index of versions by the segment of their beginning.

A version is stored under its key and the time from which it is valid:

    0 | key bytes ... | int64 valid from, ms

Each has a second entry, without a value:

    1 | int64 segment of valid from | key bytes ... | int64 valid from, ms

A version ends when the key's next version begins, so this index finds expired versions without a full scan.
Callers see the keys of the changelog: the first form without its first byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice

from streams.errors import StateError
from streams.state.backend import Backend, BackendOver, Range, Update

TIME = struct.Struct(">q")
ROWS, BY_SEGMENT, END = b"\x00", b"\x01", b"\x02"


def version_key(key: bytes, valid_from: int) -> bytes:
    """Return the stored key of a version; times (ms) are not negative, so their bytes sort as numbers do."""
    return key + TIME.pack(valid_from)


def key_of(stored_key: bytes) -> bytes:
    """Return the key's bytes in a version's stored key."""
    return stored_key[: -TIME.size]


def valid_from_of(stored_key: bytes) -> int:
    """Return the time (ms) in a version's stored key."""
    valid_from: int = TIME.unpack_from(stored_key, len(stored_key) - TIME.size)[0]
    return valid_from


def segment_ms_for(history_retention_ms: int) -> int:
    """Return the default length of a segment (ms), as in Kafka Streams."""
    for longest, parts, least in ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, 60_000)):
        if history_retention_ms <= longest:
            return max(history_retention_ms // parts, least)
    return max(history_retention_ms // 24, 300_000)


def layout_of(segment_ms: int) -> bytes:
    """Return the name of the key layout, which depends on the length of segments."""
    return b"versions, segments of %d ms" % segment_ms


class VersionsBackend(BackendOver):
    """A backend of versions over one that has them by key and by segment."""

    def __init__(self, inner: Backend, segment_ms: int) -> None:
        self.segment_ms = segment_ms
        super().__init__(inner)
        self._expired_to = BY_SEGMENT

    def get(self, key: bytes) -> bytes | None:
        return self._inner.get(ROWS + key)

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        end = BY_SEGMENT if upper is None else ROWS + upper
        rows = self._inner.scan(ROWS + (lower or b""), end, backwards=backwards)
        return ((key[1:], value) for key, value in rows)

    def times_of(self, key: bytes) -> list[int]:
        """Return the times (ms) of a key's versions, in order."""
        rows = self.scan(key, key + b"\x80")  # times are not negative
        # A longer key may sort in between.
        return [valid_from_of(stored) for stored, _ in rows if key_of(stored) == key]

    def write(
        self,
        updates: Iterable[Update],
        checkpoint: int | None,
        as_of: int | None = None,
        dropped: Iterable[Range] = (),
    ) -> None:
        assert not tuple(dropped), "versions go one by one"
        self._inner.write(self._by_segment_too(updates), checkpoint, as_of)

    def _by_segment_too(self, updates: Iterable[Update]) -> Iterator[Update]:
        for key, value in updates:
            # A stored value begins with its record's time (`cache.join`), which is that of the version.
            if len(key) < TIME.size or (value is not None and not value.startswith(key[-TIME.size :])):
                raise StateError(
                    f"{key!r} is not a versioned store's key: was another kind of store kept under this "
                    "name? Give the store another name, or reset the application"
                )
            yield ROWS + key, value
            segment = TIME.pack(valid_from_of(key) // self.segment_ms)
            yield BY_SEGMENT + segment + key, None if value is None else b""

    def take_ended(self, before: int, *, limit: int) -> list[bytes]:
        """Return the next versions that began in segments below ``before``, ``limit`` at most.

        Fewer than ``limit`` mean that there are no more for now. While the backend is open, each version is
        returned once.
        """
        end = BY_SEGMENT + TIME.pack(before)
        keys = [key for key, _ in islice(self._inner.scan(self._expired_to, end), limit)]
        self._expired_to = end if len(keys) < limit else keys[-1] + b"\x00"
        return [key[1 + TIME.size :] for key in keys]

    def wipe(self, origin: bytes | None = None) -> None:
        self._inner.wipe(origin)
        self._expired_to = BY_SEGMENT
