"""The segments of one log in a row, oldest first; the last one is active.

row[i].base_offset < row[i + 1].base_offset
a batch stands in the segment with the largest base offset not above its own
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from kafka_client.records.header import HEADER_SIZE, BatchHeader
from kafka_client.records.slice import FileSlice
from logd.storage.disk import Buffer, Disk
from logd.storage.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from logd.storage.segment import Segment

EMPTY_SEGMENTS_MAX = 16
"""Most segments without records that one read skips, so that it does not block the event loop."""

_base_offset = attrgetter("base_offset")


class Segments:
    """The segments of a log, at least one. Methods may raise OSError."""

    __slots__ = ("_directory", "_disk", "active", "row")

    def __init__(self, disk: Disk, directory: Path, row: list[Segment]) -> None:
        self._disk = disk
        self._directory = directory
        self.row = row
        self.active = row[-1]

    def index_of(self, offset: int) -> int:
        """Return the index of the segment of `offset`; the first one's for earlier offsets."""
        return max(bisect_right(self.row, offset, key=_base_offset) - 1, 0)

    def end_of(self, index: int, log_end_offset: int) -> int:
        """Return the offset at which a segment's offsets end."""
        return self.row[index + 1].base_offset if index + 1 < len(self.row) else log_end_offset

    def add(self, base_offset: int, now_ms: int) -> Segment:
        """Finish the active segment and start the next one at `base_offset`."""
        self.active.finish()  # the next flush writes its indexes
        self.active.unload()
        self.active = Segment.create(self._disk, self._directory, base_offset, now_ms)
        self.row.append(self.active)
        return self.active

    def begin_at(self, base_offset: int, now_ms: int) -> None:
        """Move the start of the only segment, which is empty, to `base_offset`. The log's directory must be
        synced then.
        """
        (before,) = self.row
        before.close()
        self.active = Segment(self._disk, self._directory, base_offset, 0, now_ms)
        self.row[:] = [self.active]
        # After a power loss the file may have its old name, which its first batch does not match: recovery
        # empties it.
        self._disk.rename(before.path(LOG_SUFFIX), self.active.path(LOG_SUFFIX))
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._disk.unlink(before.path(suffix))

    def relocate(self, disk: Disk, directory: Path) -> None:
        """Use the files in another directory; see `Log.relocate`."""
        self._disk, self._directory = disk, directory
        for segment in self.row:
            segment.relocate(disk, directory)

    def release(self) -> None:
        """Release the files as they are; returned slices stay readable."""
        for segment in self.row:
            segment.close()

    def drop_oldest(self, count: int) -> list[tuple[Path, Path]]:
        """Remove the oldest segments, not all of them; return how to rename their files away."""
        renames = [rename for segment in self.row[:count] for rename in segment.take_away()]
        del self.row[:count]
        return renames

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper_bound: int,
        log_end_offset: int,
        min_one_batch: bool,
        wants_records: bool,
    ) -> FileSlice | None:
        """Read batches; see `LogReader.read`.

        It goes on to the next segment if compaction removed a segment's last batches, or all their records.
        """
        empty: list[FileSlice] = []
        for index in range(self.index_of(offset), len(self.row)):
            segment = self.row[index]
            if segment.base_offset >= upper_bound:
                break
            if not segment.size:
                continue
            bound = upper_bound if upper_bound < self.end_of(index, log_end_offset) else None
            piece = segment.read(offset, max_bytes, bound, min_one_batch, wants_records)
            if piece is None:
                if segment.locate(offset) is not None:
                    break
            elif wants_records and piece.length == HEADER_SIZE:
                empty.append(piece)
                if len(empty) == EMPTY_SEGMENTS_MAX:
                    break
            else:
                return piece
        return empty[-1] if empty else None

    def batches_for_timestamp(
        self, timestamp: int, start_offset: int
    ) -> Iterator[tuple[BatchHeader, Buffer]]:
        """Yield batches in which a record from `start_offset` on may be at or after `timestamp` (ms)."""
        for segment in self.row:
            if segment.largest_timestamp >= timestamp:
                yield from segment.batches_for_timestamp(timestamp, start_offset)

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of all records (ms), -1 without one."""
        return max(segment.largest_timestamp for segment in self.row)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.row)
