"""A window or session store's bytes divided by time, so that expired ones are deleted without a search.

Windows whose starts (sessions whose ends) fall into the same `segment_ms` make a segment. Kafka Streams has a
database for each; here the segment comes first in the key:

    int64 segment | key bytes ... | int64 window start, ms | int32 sequence number, 0

Callers see the keys of the changelog, and scans in their order. A store whose windows are also looked up by
time alone has a second entry of each, without a value:

    255 | int64 window start, ms | key bytes ... | int64 window start, ms | int32 sequence number, 0

A segment is deleted as a whole, without tombstones in the changelog. Instead, each segment has the first
changelog offset that may have records of the segment:

    254 | int64 segment -> int64 offset

So the changelog's records before the lowest of these offsets can be deleted.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Iterable, Iterator

from streams.errors import StateError
from streams.state.backend import Backend, BackendOver, Range, Update
from streams.state.window_key import window_start

SEGMENT = OFFSET = struct.Struct(">q")
SEGMENT_MIN_MS = 60_000
FIRST_OFFSET = b"\xfe"
BY_TIME = b"\xff"
"""The first byte of entries by time. Segments are not negative, so the keys of segments sort before it."""
END_OF_SEGMENTS = b"\x80"


def segment_ms_for(retention_ms: int) -> int:
    """Return the length of a segment, as in Kafka Streams: windows outlive their retention by up to that."""
    return max(retention_ms // 2, SEGMENT_MIN_MS)


def layout_of(segment_ms: int, *, sessions: bool = False, by_time: bool = False) -> bytes:
    """Return the name of the key layout, which depends on the length of segments."""
    kind = b" of sessions" if sessions else b""
    return b"segments of %d ms" % segment_ms + kind + (b", by time" if by_time else b"")


class SegmentedBackend(BackendOver):
    """A backend of window keys over one whose keys begin with the segment.

    ``time_of`` returns the time (ms) in a key. ``by_time``: keys can be looked up by time as well.
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
        self._segments = {each: self._first_offset(each) for each in self._stored_segments()}
        """The existing segments, each with the first changelog offset that may have its records."""
        self._newest = max(((each + 1) * segment_ms - 1 for each in self._segments), default=-1)
        """An upper bound of all times here, ms. Most new keys are later, so their lookup is saved."""
        self.highest = max((each * segment_ms for each in self._segments), default=-1)
        """The highest time put, ms; -1: none. Of a backend opened again, the start of its last segment."""
        self._dropped: list[Range] = []

    def _first_offset(self, segment: int) -> int:
        stored = self._inner.get(FIRST_OFFSET + SEGMENT.pack(segment))
        return 0 if stored is None else OFFSET.unpack(stored)[0]  # None: of a release that stored no offsets

    @property
    def needed_from(self) -> int:
        """The first changelog offset that may have records of the segments here."""
        return min(self._segments.values(), default=self.checkpoint or 0)

    def get(self, key: bytes) -> bytes | None:
        time = self._time_of(key)
        if time > self._newest or (segment := time // self.segment_ms) not in self._segments:
            return None
        return self._inner.get(SEGMENT.pack(segment) + key)

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        scans = (self._scan_segment(each, lower, upper, backwards) for each in sorted(self._segments))
        return heapq.merge(*scans, reverse=backwards)

    def scan_times(self, first: int, last: int) -> Iterator[bytes]:
        """Iterate over the keys of the times (ms) from ``first`` to ``last``, both included, by time."""
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

    def write(
        self,
        updates: Iterable[Update],
        checkpoint: int | None,
        as_of: int | None = None,
        dropped: Iterable[Range] = (),
    ) -> None:
        dropped, self._dropped = [*dropped, *self._dropped], []
        # The changelog has these updates after those of earlier writes.
        self._inner.write(self._with_segments(updates, self.checkpoint or 0), checkpoint, as_of, dropped)

    def _with_segments(self, updates: Iterable[Update], behind: int) -> Iterator[Update]:
        segment_ms, segments, time_of, by_time = self.segment_ms, self._segments, self._time_of, self._by_time
        newest, highest = self._newest, self.highest
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
                if segment not in segments:
                    segments[segment] = behind
                    yield FIRST_OFFSET + SEGMENT.pack(segment), OFFSET.pack(behind)
                if time > highest:
                    highest = self.highest = time
                    newest = self._newest = max(newest, time)
            yield SEGMENT.pack(segment) + key, value
            if by_time:
                yield BY_TIME + SEGMENT.pack(time) + key, None if value is None else b""

    def drop_before(self, segment: int) -> None:
        """Hide the segments below ``segment`` from now on; the next `write` deletes them."""
        expired = [each for each in self._segments if each < segment]
        if not expired:
            return
        lowest = min(expired)
        for each in expired:
            del self._segments[each]
        lower, upper = SEGMENT.pack(lowest), SEGMENT.pack(segment)
        self._dropped += [(lower, upper), (FIRST_OFFSET + lower, FIRST_OFFSET + upper)]
        if self._by_time:
            times = (SEGMENT.pack(each * self.segment_ms) for each in (lowest, segment))
            begin, end = (BY_TIME + time for time in times)
            self._dropped.append((begin, end))

    def _stored_segments(self) -> Iterator[int]:
        segment = 0
        while (first := next(self._inner.scan(SEGMENT.pack(segment), END_OF_SEGMENTS), None)) is not None:
            (segment,) = SEGMENT.unpack_from(first[0])
            yield segment
            segment += 1

    def wipe(self, origin: bytes | None = None) -> None:
        self._inner.wipe(origin)
        self._segments.clear()
        self._newest = self.highest = -1
        self._dropped = []
