"""The time index of one segment: the offset after which timestamps are larger.

    .timeindex: entries of 12 bytes, big-endian, timestamps rising
        int64  the largest timestamp in the segment so far, ms
        int32  last offset of the first batch that has it, relative to the segment's base offset

An entry (t, o) says that no record up to `o` is later than `t`. An entry is written with each entry of the
offset index if `t` has grown. Another one is written when the segment is rolled or closed, so that the last
entry has the segment's largest timestamp.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import ClassVar

from logd.storage.index.file import IndexFile

ENTRY = struct.Struct(">qi")
NO_TIMESTAMP = -1


class TimeIndex(IndexFile):
    """An index whose keys are timestamps, and whose values are relative offsets."""

    __slots__ = ()

    ENTRY_SIZE: ClassVar[int] = ENTRY.size

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is larger than the last one's."""
        last = self.last()
        if timestamp > (last[0] if last is not None else NO_TIMESTAMP):
            self.keys.append(timestamp)
            self.values.append(offset - self.base_offset)

    def lookup(self, timestamp: int) -> int:
        """Return an offset such that no record before it is as late as `timestamp`."""
        index = bisect_left(self.loaded(), timestamp)
        return self.base_offset + (self.values[index - 1] if index else 0)

    def last_entry(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry, (-1, base offset) without one. Reads only that
        entry.
        """
        last = self.last()
        return (last[0], self.base_offset + last[1]) if last is not None else (NO_TIMESTAMP, self.base_offset)

    def truncate(self, end_offset: int) -> None:
        """Remove entries at or after `end_offset`, in the file too."""
        keys = self.loaded()
        while self.values and self.base_offset + self.values[-1] >= end_offset:
            self.values.pop()
            keys.pop()
        self._truncate_file(len(keys))

    def _offsets(self) -> array[int]:
        return self.values

    def _decode(self, data: bytes) -> tuple[array[int], array[int]]:
        keys, values = array("q"), array("i")
        for timestamp, offset in ENTRY.iter_unpack(data):
            keys.append(timestamp)
            values.append(offset)
        return keys, values

    def _encode(self, start: int) -> bytes:
        rows = zip(self.keys[start:], self.values[start:], strict=True)
        return b"".join(ENTRY.pack(*row) for row in rows)
