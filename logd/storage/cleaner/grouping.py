"""Which segments are rewritten together: neighbours become one as long as what stays of them fits.

A segment that would fit as it is joins at once. Of any other the first batches that stay are held back until
it shows: mostly little stays of a dirty segment, and then it joins after all; else its own segment begins.
So what becomes tiny or empty is merged in the same round, and the number of segments follows what they hold.
"""

from __future__ import annotations

from kafka_client.records.header import BatchHeader
from logd.storage.cleaner.messages import AbortedEntry, Source, Task
from logd.storage.cleaner.writing import CleanedSegment
from logd.storage.disk import Buffer
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import TimeIndex

GROUP_SEGMENTS_MAX = 32
"""Segments in a group: the owner renames their files in one go. Many small ones merge over several rounds."""
RELATIVE_OFFSET_MAX = 2**31 - 1


def bytes_max(task: Task) -> int:
    """Bytes of log that a segment and its indexes have room for."""
    # An entry comes after more than an interval of log.
    entry_bytes = max(OffsetIndex.ENTRY_SIZE, TimeIndex.ENTRY_SIZE)
    return min(task.segment_bytes, task.segment_index_bytes // entry_bytes * (task.index_interval_bytes + 1))


class Held:
    """What stays of a segment's beginning, while it is open where it goes: at most `bytes_max` of it."""

    def __init__(self, bytes_max: int) -> None:
        self.batches: list[tuple[BatchHeader, int, bytes]] = []
        self.size = 0
        self.last_offset = -1
        self._bytes_max = bytes_max

    @property
    def is_full(self) -> bool:
        """Whether so much stays that the segment may stand alone."""
        return self.size > self._bytes_max

    def append(self, header: BatchHeader, max_timestamp: int, batch: Buffer) -> None:
        """As `CleanedSegment.append`; the batch is copied."""
        self.batches.append((header, max_timestamp, bytes(batch)))
        self.size += len(batch)
        self.last_offset = header.last_offset


class Group:
    """Segments that become one; the first may be above all limits. `is_changed`: not all of it stays."""

    def __init__(self, written: CleanedSegment, bytes_max: int) -> None:
        self.written = written
        self.sources: list[Source] = []
        self.is_changed = False
        self._bytes_max = bytes_max

    @property
    def is_full(self) -> bool:
        """Whether no further segment may join."""
        return len(self.sources) >= GROUP_SEGMENTS_MAX

    def has_room(self, source: Source) -> bool:
        """Whether a segment fits, whatever stays of it."""
        return self._fits(source.size, source.end_offset - 1)

    def takes(self, held: Held) -> bool:
        """Whether what is held back of a segment fits."""
        return not held.is_full and self._fits(held.size, held.last_offset)

    def _fits(self, size: int, last_offset: int) -> bool:
        written = self.written
        is_near = last_offset - written.base_offset <= RELATIVE_OFFSET_MAX
        return is_near and written.size + size <= self._bytes_max

    def append(self, header: BatchHeader, max_timestamp: int, batch: Buffer) -> None:
        """As `CleanedSegment.append`."""
        self.written.append(header, max_timestamp, batch)

    def join(self, source: Source, aborted: list[AbortedEntry], *, is_changed: bool) -> None:
        """All that stays of `source` was appended; `aborted` are the transactions that end in it."""
        self.is_changed |= is_changed or bool(self.sources)
        self.sources.append(source)
        for entry in aborted:
            self.written.add_aborted(entry)
