"""A versioned store's bytes: the versions of a key beside each other, and what became old in which segment.

A version lies under its key and the time from which it is valid:

    0 | key bytes ... | int64 valid from, ms

Each has a second entry, without a value, so that what is expired is found without a look at the rest: what
lies before a version of the key has ended when that one began.

    1 | int64 segment of valid from | key bytes ... | int64 valid from, ms

Above this, keys are those of the changelog: the first form without its first byte.
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
    """Where a version lies; times (ms) are not negative, so that they sort as numbers do."""
    return key + TIME.pack(valid_from)


def key_of(stored_key: bytes) -> bytes:
    """The key's bytes in a version's key."""
    return stored_key[: -TIME.size]


def valid_from_of(stored_key: bytes) -> int:
    """The time (ms) in a version's key."""
    valid_from: int = TIME.unpack_from(stored_key, len(stored_key) - TIME.size)[0]
    return valid_from


def segment_ms_for(history_retention_ms: int) -> int:
    """The length of a segment unless one is given, as in Kafka Streams."""
    for longest, parts, least in ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, 60_000)):
        if history_retention_ms <= longest:
            return max(history_retention_ms // parts, least)
    return max(history_retention_ms // 24, 300_000)


def layout_of(segment_ms: int) -> bytes:
    """The name of these keys' layout: it depends on the length of segments."""
    return b"versions, segments of %d ms" % segment_ms


class VersionsBackend(BackendOver):
    """A backend of versions over one that has them by segment, too."""

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
        found = self._inner.scan(ROWS + (lower or b""), end, backwards=backwards)
        return ((key[1:], value) for key, value in found)

    def times_of(self, key: bytes) -> list[int]:
        """The times of a key's versions, in order."""
        found = self.scan(key, key + b"\x80")  # times are not negative
        # A longer key may sort in between.
        return [valid_from_of(stored) for stored, _ in found if key_of(stored) == key]

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
            # What is kept begins with its record's time (`cache.join`), which is the version's.
            if len(key) < TIME.size or (value is not None and not value.startswith(key[-TIME.size :])):
                raise StateError(
                    f"{key!r} is not a versioned store's key: was another kind of store kept under this "
                    "name? Give the store another name, or reset the application"
                )
            yield ROWS + key, value
            segment = TIME.pack(valid_from_of(key) // self.segment_ms)
            yield BY_SEGMENT + segment + key, None if value is None else b""

    def take_ended(self, before: int, *, limit: int) -> list[bytes]:
        """The next versions that began in segments below ``before``, each once as long as this backend is
        open. Fewer than ``limit`` mean that there are no more for now.
        """
        end = BY_SEGMENT + TIME.pack(before)
        found = [key for key, _ in islice(self._inner.scan(self._expired_to, end), limit)]
        self._expired_to = end if len(found) < limit else found[-1] + b"\x00"
        return [key[1 + TIME.size :] for key in found]

    def wipe(self, origin: bytes | None = None) -> None:
        self._inner.wipe(origin)
        self._expired_to = BY_SEGMENT
