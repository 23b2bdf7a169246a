"""The offset index of one segment: the positions of batches in the `.log`.

    .index: entries of 8 bytes, big-endian, both numbers rising
        int32  last offset of a batch, relative to the segment's base offset
        int32  position of that batch's first byte in the .log

The index is sparse: it has an entry every `index.interval.bytes` of log.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import ClassVar

from logd.storage.index.file import IndexFile


class OffsetIndex(IndexFile):
    """An index whose keys are relative last offsets, and whose values are positions."""

    __slots__ = ()

    ENTRY_SIZE: ClassVar[int] = 8

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry: a batch that ends with `last_offset` starts at `position`."""
        if self._first < 0:
            self._look_at_end()
        self.keys.append(last_offset - self.base_offset)
        self.values.append(position)

    def lookup(self, offset: int) -> int:
        """Return a position at or before the batch that holds `offset`; 0 if there is no such entry."""
        keys = self.loaded() if self._first else self.keys
        index = bisect_right(keys, offset - self.base_offset)
        return self.values[index - 1] if index else 0

    def boundary_before(self, position: int) -> int:
        """Return the last known start of a batch at or before `position`; 0 if there is no such entry."""
        self.loaded()
        index = bisect_right(self.values, position)
        return self.values[index - 1] if index else 0

    def offset_behind(self, position: int) -> int | None:
        """Return an offset that no batch before `position` reaches; None if there is no such entry."""
        keys = self.loaded()
        index = bisect_left(self.values, position)
        return self.base_offset + keys[index] if index < len(keys) else None

    def last_position(self) -> int:
        """Return the position in the last entry, 0 without one. Reads only that entry."""
        last = self.last()
        return last[1] if last is not None else 0

    def leads_to(self, last_offset: int) -> bool:
        """Return True if there is no entry, or the last one is of the batch that ends with `last_offset`."""
        last = self.last()
        return last is None or last[0] == last_offset - self.base_offset

    def truncate(self, size: int) -> None:
        """Remove entries of batches at or after byte `size` of the log, in the file too."""
        keys = self.loaded()
        while self.values and self.values[-1] >= size:
            self.values.pop()
            keys.pop()
        self._truncate_file(len(keys))

    def _offsets(self) -> array[int]:
        return self.loaded()

    def _decode(self, data: bytes) -> tuple[array[int], array[int]]:
        rows = _swapped(array("i", data))
        return rows[0::2], rows[1::2]

    def _encode(self, start: int) -> bytes:
        keys = self.keys[start:]
        rows = array("i", bytes(self.ENTRY_SIZE * len(keys)))
        rows[0::2] = keys
        rows[1::2] = self.values[start:]
        return _swapped(rows).tobytes()


def _swapped(numbers: array[int]) -> array[int]:
    """Convert between this machine's byte order and the file's, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
