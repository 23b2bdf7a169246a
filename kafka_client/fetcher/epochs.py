"""The leader epochs of the records read from one partition, which show that a log was truncated (KIP-320)."""

from __future__ import annotations

import struct

NO_EPOCH = -1
_PLACE = struct.Struct(">qii")
"""The base offset, the length from byte 12 on, and the partition leader epoch of a batch."""
_LOG_OVERHEAD = 12
ENTRIES_MAX = 32
"""Most changes of epoch that are remembered; older ones only matter for offsets committed long after
reading.
"""


class ReadEpochs:
    """Pairs of (first offset, epoch), oldest first: records of that epoch were read from that offset on.

    Epoch -1 is unknown: that of the record before an offset that was looked up by time or as an end.
    """

    __slots__ = ("_entries",)

    def __init__(self, offset: int, epoch: int) -> None:
        self._entries: list[tuple[int, int]] = []
        self.begin(offset, epoch)

    def begin(self, offset: int, epoch: int) -> None:
        """Start again at `offset`; the record before it is of `epoch`."""
        self._entries = [(offset - 1, epoch)]

    def jump(self, offset: int) -> None:
        """Continue at `offset`; the epoch of the record before it is unknown."""
        self._entries = [entry for entry in self._entries if entry[0] < offset - 1]
        self._entries.append((offset - 1, NO_EPOCH))

    def note(self, buffer: memoryview, last_epoch: int) -> None:
        """Record that whole batches were read, the last one of `last_epoch`. Batches are only visited if
        the epoch changed.
        """
        if self._entries[-1][1] == last_epoch:
            return
        pos = 0
        while pos < len(buffer):
            base_offset, length, epoch = _PLACE.unpack_from(buffer, pos)
            if epoch != self._entries[-1][1]:
                self._entries.append((base_offset, epoch))
            pos += _LOG_OVERHEAD + length
        del self._entries[:-ENTRIES_MAX]

    def before(self, offset: int) -> int:
        """Return the epoch of the record before `offset`, -1 if it is unknown."""
        for first, epoch in reversed(self._entries):
            if first < offset:
                return epoch
        return NO_EPOCH

    def first_above(self, epoch: int) -> int | None:
        """Return the first offset read with an epoch later than `epoch`, None if there is none."""
        return next((first for first, each in self._entries if each > epoch), None)
