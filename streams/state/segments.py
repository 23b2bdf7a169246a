"""A window or session store's bytes divided by time: what is expired is found without a look at the rest.

Windows whose starts (sessions whose ends) fall into the same `segment_ms` make a segment. Kafka Streams has a
database for each; here the segment comes first in the key:

    int64 segment | key bytes ... | int64 window start, ms | int32 sequence number, 0

Above this, keys are those of the changelog, and scans are in their order. A store whose windows are also
looked up by time alone has a second entry of each, without a value:

    255 | int64 window start, ms | key bytes ... | int64 window start, ms | int32 sequence number, 0
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from streams.errors import StateError
from streams.state.backend import Backend, BackendOver, Update
from streams.state.window_key import window_start

SEGMENT = struct.Struct(">q")
SEGMENT_MIN_MS = 60_000
BY_TIME = b"\xff"
"""What entries by time begin with. Segments are not negative, so theirs come before."""
END_OF_SEGMENTS = b"\x80"


def segment_ms_for(retention_ms: int) -> int:
    """The length of a segment, as in Kafka Streams; windows stay up to that much beyond their retention."""
    return max(retention_ms // 2, SEGMENT_MIN_MS)


def layout_of(segment_ms: int, *, sessions: bool = False, by_time: bool = False) -> bytes:
    """The name of these keys' layout: it depends on the length of segments."""
    kind = b" of sessions" if sessions else b""
    return b"segments of %d ms" % segment_ms + kind + (b", by time" if by_time else b"")


class SegmentedBackend(BackendOver):
    """A backend of window keys over one whose keys begin with the segment.

    ``time_of`` finds the time (ms) in a key. ``by_time``: what there is can be looked up by time, too.
    """

    def __init__(
        self,
        inner: Backend,
        segment_ms: int,
        *,
        time_of: Callable[[bytes], int] = window_start,
        by_time: bool = False,
    ) -> None:
        self.segment_ms = segment_ms
        super().__init__(inner)
        self._time_of = time_of
        self._by_time = by_time
        self._segments = set(self._found_segments())
        self._newest = max(((each + 1) * segment_ms - 1 for each in self._segments), default=-1)
        """Nothing is of a later time, ms: what is put next mostly is, and need not be looked for."""
        self._expired_to = b""

    def get(self, key: bytes) -> bytes | None:
        time = self._time_of(key)
        return None if time > self._newest else self._inner.get(SEGMENT.pack(time // self.segment_ms) + key)

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        segments = sorted(self._segments)
        found = (self._scan_segment(each, lower, upper, backwards) for each in segments)
        return heapq.merge(*found, reverse=backwards)

    def scan_times(self, first: int, last: int) -> Iterator[bytes]:
        """The keys of the times (ms) from ``first`` to ``last``, by time."""
        assert self._by_time, "there are no entries by time"
        begin = len(BY_TIME) + SEGMENT.size
        lower, upper = BY_TIME + SEGMENT.pack(first), BY_TIME + SEGMENT.pack(last + 1)
        return (key[begin:] for key, _ in self._inner.scan(lower, upper))

    def _scan_segment(
        self, segment: int, lower: bytes | None, upper: bytes | None, backwards: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        prefix = SEGMENT.pack(segment)
        end = SEGMENT.pack(segment + 1) if upper is None else prefix + upper
        for key, value in self._inner.scan(prefix + (lower or b""), end, backwards=backwards):
            yield key[SEGMENT.size :], value

    def write(self, updates: Iterable[Update], checkpoint: int | None, as_of: int | None = None) -> None:
        self._inner.write(self._with_segments(updates), checkpoint, as_of)

    def _with_segments(self, updates: Iterable[Update]) -> Iterator[Update]:
        segment_ms, segments, time_of, by_time = self.segment_ms, self._segments, self._time_of, self._by_time
        newest = self._newest
        for key, value in updates:
            try:
                time = time_of(key)
            except struct.error:
                raise StateError(
                    f"{key!r} is not a window store's key: was another kind of store kept under this name? "
                    "Give the store another name, or reset the application"
                ) from None
            segment = time // segment_ms
            if value is not None:
                segments.add(segment)
                if time > newest:
                    newest = self._newest = time
            yield SEGMENT.pack(segment) + key, value
            if by_time:
                yield BY_TIME + SEGMENT.pack(time) + key, None if value is None else b""

    def take_expired(self, before: int, *, limit: int) -> list[bytes]:
        """The next keys of segments below ``before``, each once as long as this backend is open; the caller
        deletes them with the next `write`. Fewer than ``limit`` mean that there are no more for now.
        """
        end = SEGMENT.pack(before)
        found = [key for key, _ in islice(self._inner.scan(self._expired_to or None, end), limit)]
        if len(found) < limit:
            self._expired_to = end
            self._segments = {each for each in self._segments if each >= before}
        else:
            self._expired_to = found[-1] + b"\x00"
        return [key[SEGMENT.size :] for key in found]

    def _found_segments(self) -> Iterator[int]:
        segment = 0
        while (first := next(self._inner.scan(SEGMENT.pack(segment), END_OF_SEGMENTS), None)) is not None:
            (segment,) = SEGMENT.unpack_from(first[0])
            yield segment
            segment += 1

    def wipe(self, origin: bytes | None = None) -> None:
        self._inner.wipe(origin)
        self._segments.clear()
        self._newest = -1
        self._expired_to = b""
