"""The leader epochs of the records read of one partition (KIP-320): what tells that a log was truncated."""

from __future__ import annotations

import struct

NO_EPOCH = -1
_PLACE = struct.Struct(">qii")
"""Of a batch: base offset, length from byte 12 on, partition leader epoch."""
_LOG_OVERHEAD = 12
ENTRIES_MAX = 32
"""Changes of epoch remembered; older ones are only wanted for offsets committed long after they were read."""


class ReadEpochs:
    """(first offset, epoch) pairs, oldest first: from that offset on records of that epoch were read.

    Epoch -1 is not known: that of the record before an offset that was looked up by time or as an end.
    """

    __slots__ = ("_entries",)

    def __init__(self, offset: int, epoch: int) -> None:
        self._entries: list[tuple[int, int]] = []
        self.begin(offset, epoch)

    def begin(self, offset: int, epoch: int) -> None:
        """Forget everything; the record before `offset` is of `epoch`."""
        self._entries = [(offset - 1, epoch)]

    def jump(self, offset: int) -> None:
        """Reading goes on at `offset`, and what stands before it is not known."""
        self._entries = [entry for entry in self._entries if entry[0] < offset - 1]
        self._entries.append((offset - 1, NO_EPOCH))

    def note(self, buffer: memoryview, last_epoch: int) -> None:
        """Whole batches were read, the last of them of `last_epoch`. They are walked if the epoch changed."""
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
        """The epoch of the record before `offset`, -1 if it is not known."""
        for first, epoch in reversed(self._entries):
            if first < offset:
                return epoch
        return NO_EPOCH

    def first_above(self, epoch: int) -> int | None:
        """The first offset read of an epoch later than `epoch`."""
        return next((first for first, each in self._entries if each > epoch), None)
