"""The grouping of segments that are rewritten as one: neighbours are merged as long as their remaining
records fit.

A segment that would fit unchanged joins the group at once. For any other one, the first remaining batches are
held back until they exceed the group's room. Usually little remains of a dirty segment, so it joins after
all; otherwise it starts a segment of its own. So tiny and empty segments are merged in the same round, and
the number of segments depends on their remaining bytes.
"""

from __future__ import annotations

from kafka_client.records.header import BatchHeader
from logd.storage.cleaner.messages import AbortedEntry, Source, Task
from logd.storage.cleaner.writing import CleanedSegment
from logd.storage.disk import Buffer
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import TimeIndex

GROUP_SEGMENTS_MAX = 32
"""Most segments in a group: the owner renames all their files at once. Many small segments take several
rounds.
"""
RELATIVE_OFFSET_MAX = 2**31 - 1


def bytes_max(task: Task) -> int:
    """Return how many bytes of log fit into a segment and its indexes."""
    # There is more than one interval of log before each entry.
    entry_bytes = max(OffsetIndex.ENTRY_SIZE, TimeIndex.ENTRY_SIZE)
    return min(task.segment_bytes, task.segment_index_bytes // entry_bytes * (task.index_interval_bytes + 1))


class DeferredBatches:
    """The first remaining batches of a segment, at most `bytes_max` of them, while their group is
    undecided.
    """

    def __init__(self, bytes_max: int) -> None:
        self.batches: list[tuple[BatchHeader, int, bytes]] = []
        self.size = 0
        self.last_offset = -1
        self._bytes_max = bytes_max

    @property
    def is_full(self) -> bool:
        """True if so much remains that the segment gets a group of its own."""
        return self.size > self._bytes_max

    def append(self, header: BatchHeader, max_timestamp: int, batch: Buffer) -> None:
        """Add a batch as `CleanedSegment.append` does; the batch is copied."""
        self.batches.append((header, max_timestamp, bytes(batch)))
        self.size += len(batch)
        self.last_offset = header.last_offset


class Group:
    """Segments that are merged into one; the first segment may exceed all limits.

    `is_changed` is False if a single segment remains exactly as it was.
    """

    def __init__(self, written: CleanedSegment, bytes_max: int) -> None:
        self.written = written
        self.sources: list[Source] = []
        self.is_changed = False
        self._bytes_max = bytes_max

    @property
    def is_full(self) -> bool:
        """True if no further segment may join."""
        return len(self.sources) >= GROUP_SEGMENTS_MAX

    def has_room(self, source: Source) -> bool:
        """Return True if the segment fits even if all of it remains."""
        return self._fits(source.size, source.end_offset - 1)

    def takes(self, deferred: DeferredBatches) -> bool:
        """Return True if the deferred batches of a whole segment fit."""
        return not deferred.is_full and self._fits(deferred.size, deferred.last_offset)

    def _fits(self, size: int, last_offset: int) -> bool:
        written = self.written
        is_near = last_offset - written.base_offset <= RELATIVE_OFFSET_MAX
        return is_near and written.size + size <= self._bytes_max

    def append(self, header: BatchHeader, max_timestamp: int, batch: Buffer) -> None:
        """Add a batch; see `CleanedSegment.append`."""
        self.written.append(header, max_timestamp, batch)

    def join(self, source: Source, aborted: list[AbortedEntry], *, is_changed: bool) -> None:
        """Record that all remaining batches of `source` were appended. `aborted` are the transactions that
        end in it.
        """
        self.is_changed |= is_changed or bool(self.sources)
        self.sources.append(source)
        for entry in aborted:
            self.written.add_aborted(entry)
