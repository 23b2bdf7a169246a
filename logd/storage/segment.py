"""A segment of a log: the `.log` file and its indexes.

Files are opened when first needed. A segment does not know log start offsets, high watermarks or epochs:
`log` orders the segments and decides what is written and what may be read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.header import HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from kafka_client.records.slice import FileSlice
from logd.storage.disk import Buffer, Disk, File
from logd.storage.empty_runs import EmptyRuns
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import NO_TIMESTAMP, TimeIndex
from logd.storage.index.transaction import TransactionIndex
from logd.storage.jobs import FileWrite
from logd.storage.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_name,
)
from logd.storage.new_log import Placement
from logd.storage.open_files import OPEN_FILES
from logd.storage.scan import find_batch, scan_headers

NOT_READ = -2
"""A timestamp that has not been read from the disk yet."""
RECENT_BATCHES = 128
"""The last appended batches whose positions are remembered: at least this many, at most twice as many."""
RELATIVE_OFFSET_MAX = 2**31 - 1


class Segment:
    """The batches from `base_offset` on, `size` bytes of them. Methods may raise OSError."""

    __slots__ = (
        "_bytes_since_index",
        "_disk",
        "_empty_runs",
        "_file",
        "_first_timestamp",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_placement",
        "_recent_offsets",
        "_recent_positions",
        "_size_seen",
        "_used",
        "base_offset",
        "created_ms",
        "directory",
        "index",
        "size",
        "time_index",
        "txn_index",
    )

    def __init__(self, disk: Disk, directory: Path, base_offset: int, size: int, created_ms: int) -> None:
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.index = OffsetIndex(disk, directory, offset_name(base_offset, INDEX_SUFFIX), base_offset)
        self.time_index = TimeIndex(disk, directory, offset_name(base_offset, TIME_INDEX_SUFFIX), base_offset)
        self.txn_index = TransactionIndex(
            disk, directory, offset_name(base_offset, TXN_INDEX_SUFFIX), base_offset
        )
        self._file: File | None = None
        self._placement: Placement | None = None
        self._used = False
        self._size_seen = size
        self._bytes_since_index = 0
        self._first_timestamp = NOT_READ if size else NO_TIMESTAMP
        self._max_timestamp = NOT_READ if size else NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._recent_offsets = array("q")
        self._recent_positions = array("q")
        self._empty_runs = EmptyRuns()

    @classmethod
    def create(cls, disk: Disk, directory: Path, base_offset: int, created_ms: int) -> Segment:
        """Create a new, empty segment and its `.log` file."""
        segment = cls(disk, directory, base_offset, 0, created_ms)
        segment.file.truncate(0)
        return segment

    def placed_by(self, placement: Placement) -> None:
        """Set the placement that creates the files: it is called before the first file is opened."""
        self._placement = placement

    def path(self, suffix: str) -> Path:
        """Return the path of one of the segment's files."""
        return self.directory / offset_name(self.base_offset, suffix)

    @property
    def file_name(self) -> str:
        """The `.log` file's name with its directory's, for messages."""
        return f"{self.directory.name}/{offset_name(self.base_offset, LOG_SUFFIX)}"

    def place(self) -> None:
        """Create the files of a new log on the disk; see `placed_by`."""
        if self._placement is not None:
            self._placement.carry_out()

    @property
    def file(self) -> File:
        """The `.log` file, opened if it is not open."""
        self._used = True
        file = self._file
        if file is None:
            if self._placement is not None:
                self._placement.carry_out()
                self._placement = None
            file = self._file = self._disk.open(self.path(LOG_SUFFIX))
            OPEN_FILES.opened(self)
        return file

    def was_used(self) -> bool:
        """Return True if the file was read or grew since the last call; see `open_files`."""
        used = self._used or self.size != self._size_seen
        self._used, self._size_seen = False, self.size
        return used

    def rest(self) -> None:
        """Release the file, and memory that only saves reading it again."""
        self.close()
        self.unload()

    # Writing

    def expect_appends(self) -> None:
        """Read what the first append needs, so that it does not wait for the disk."""
        if self.size:
            try:
                self._first_timestamp, self._max_timestamp = self.first_timestamp, self.largest_timestamp
            except CorruptRecordBatch:
                return  # the append raises the error
        self.index.last()
        self.time_index.last()

    def append(
        self,
        buffers: Sequence[Buffer],
        size: int,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        index_interval: int,
    ) -> None:
        """Write a batch of `size` bytes at the end of the file, and `note` it."""
        (self._file or self.file).write(self.size, buffers)
        self.note(size, base_offset, last_offset, max_timestamp, index_interval)

    def append_run(
        self, run: Buffer, headers: Iterable[BatchHeader], end_offset: int, index_interval: int
    ) -> None:
        """Write consecutive batches at the end of the file, in one write, and `note` each.

        They must fit: see `room`. `end_offset` is the end of the log before; there may be gaps after it.
        """
        (self._file or self.file).write(self.size, (run,))
        note = self.note
        for header in headers:
            base = header.base_offset
            if base != end_offset:
                self._forget_recent()  # remembered batches have no gaps between them
            last = base + header.last_offset_delta
            note(LOG_OVERHEAD + header.batch_length, base, last, header.max_timestamp, index_interval)
            end_offset = last + 1

    def _forget_recent(self) -> None:
        self._recent_offsets, self._recent_positions = array("q"), array("q")

    def note(
        self, size: int, base_offset: int, last_offset: int, max_timestamp: int, index_interval: int
    ) -> None:
        """Count the next `size` bytes of the file as a batch, and add index entries if they are due."""
        position = self.size
        if max_timestamp > (
            self._max_timestamp if self._max_timestamp != NOT_READ else self.largest_timestamp
        ):
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        if self._bytes_since_index > index_interval:
            self.index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_index = 0
        self._bytes_since_index += size
        recent = self._recent_offsets
        recent.append(base_offset)
        self._recent_positions.append(position)
        if len(recent) > 2 * RECENT_BATCHES:
            del recent[:RECENT_BATCHES]
            del self._recent_positions[:RECENT_BATCHES]
        self.size = position + size

    def reset(self) -> None:
        """Clear everything but the file's bytes, whose batches are then noted again from the first on."""
        self.index.clear()
        self.time_index.clear()
        self.size = self._bytes_since_index = 0
        self._first_timestamp = self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self._forget_recent()

    def rewind(self, end_offset: int) -> bool:
        """Keep batches before `end_offset`, all of which were flushed; later ones are then noted again.

        Returns False if the indexes do not lead there: call `reset` then.
        """
        self.index.rewind(end_offset)
        self.time_index.rewind(end_offset)
        try:
            size = self._end_of_flushed(end_offset)
            if size is None:
                return False
            self.size = size
            self._bytes_since_index = size - self.index.last_position()
            self._first_timestamp = NOT_READ if size else NO_TIMESTAMP
            self._reread_timestamps()
        except CorruptRecordBatch:
            return False
        return True

    def _end_of_flushed(self, end_offset: int) -> int | None:
        """Return the end of the last batch before `end_offset`; None if it cannot be found."""
        position = self.index.last_position()
        for number, (start, header) in enumerate(scan_headers(self.file, position, self.size)):
            if number == 0 and not self.index.leads_to(header.last_offset):
                return None
            if header.next_offset >= end_offset:
                return start + header.size if header.next_offset == end_offset else start
        return None

    def fits(self, last_offset: int, index_interval: int, index_bytes_max: int) -> bool:
        """Return True if the indexes can take a batch that ends with `last_offset`."""
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return False
        if self._bytes_since_index <= index_interval:
            return True
        # The time index needs room for one more entry: the last one, of `finish`.
        return (len(self.index) + 1) * OffsetIndex.ENTRY_SIZE <= index_bytes_max and (
            len(self.time_index) + 2
        ) * TimeIndex.ENTRY_SIZE <= index_bytes_max

    def room(self, index_bytes_max: int) -> int:
        """Return how many more batches fit into the indexes, even with an entry for each."""
        return min(
            index_bytes_max // OffsetIndex.ENTRY_SIZE - len(self.index),
            index_bytes_max // TimeIndex.ENTRY_SIZE - 1 - len(self.time_index),
        )

    def open_for(self, max_timestamp: int, now_ms: int) -> int:
        """Return how long the segment has been open (ms), by its records' timestamps, or by the clock without
        them.
        """
        first = self._first_timestamp
        if first == NOT_READ:
            first = self.first_timestamp
        return max_timestamp - first if first >= 0 <= max_timestamp else now_ms - self.created_ms

    def finish(self) -> None:
        """Write the last time index entry, with the segment's largest timestamp: no more batches follow."""
        if self.size:
            self.time_index.maybe_append(self.largest_timestamp, self._max_timestamp_offset)

    def save(self) -> list[File]:
        """Write the indexes; return the files to sync. The caller closes those of the indexes."""
        aborted = self.txn_index.save()
        return [self.file, self.index.save(), self.time_index.save(), *([aborted] if aborted else [])]

    def not_synced(self) -> None:
        """Have the next flush sync the files that `save` returned: they were not synced."""
        self.index.not_synced()
        self.time_index.not_synced()

    def start_save(self) -> list[FileWrite]:
        """Return the writes that `save` would make, to be made in a thread; call `saved` after them."""
        writes = [self.index.start_save(), self.time_index.start_save()]
        if (aborted := self.txn_index.save()) is not None:
            writes.append(FileWrite(aborted, 0, b""))  # its entries are already in the file
        return [write for write in writes if write is not None]

    def saved(self) -> None:
        """Record that the writes of `start_save` were made."""
        self.index.saved()
        self.time_index.saved()

    def unload(self) -> None:
        """Drop memory that only saves reading the disk again."""
        self.index.unload()
        self.time_index.unload()
        self.txn_index.unload()
        self._empty_runs = EmptyRuns()
        self._forget_recent()

    def truncate(self, size: int, end_offset: int) -> None:
        """Truncate the file to `size` bytes, which end before `end_offset`."""
        self.index.truncate(size)
        self.time_index.truncate(end_offset)
        self.txn_index.truncate(end_offset)
        self.file.truncate(size)
        self.size = size
        self._bytes_since_index = 0
        self._empty_runs = EmptyRuns()
        self._forget_recent()
        self._first_timestamp = self._max_timestamp = NOT_READ if size else NO_TIMESTAMP
        if size:
            self._reread_timestamps()

    def close(self) -> None:
        """Release the file. A `FileSlice` that was returned keeps its descriptor."""
        # Not `File.close`: a flush that runs in a thread may be using the file.
        self._file = None
        self._used, self._size_seen = False, self.size

    def relocate(self, disk: Disk, directory: Path) -> None:
        """Use the files in another directory; see `Log.relocate`."""
        self.close()
        self._disk, self.directory = disk, directory
        self.index.relocate(disk, directory)
        self.time_index.relocate(disk, directory)
        self.txn_index.relocate(disk, directory)

    def mark_deleted(self) -> list[Path]:
        """Rename the files away and release them; return the files to unlink later."""
        renamed = []
        for path, target in self.take_away():
            try:
                self._disk.rename(path, target)
            except FileNotFoundError:
                continue
            renamed.append(target)
        return renamed

    def take_away(self) -> list[tuple[Path, Path]]:
        """Release the files; return how to rename them (not all exist), which a `Deletion` does."""
        self.close()
        return self.renames()

    def renames(self) -> list[tuple[Path, Path]]:
        """Return how the files are renamed before their deletion; not all exist."""
        paths = [self.path(suffix) for suffix in SEGMENT_SUFFIXES]
        return [(path, path.with_name(path.name + DELETED_SUFFIX)) for path in paths]

    def finish_again(self) -> None:
        """Call `finish` on a segment that a crash may have left flushed but not finished."""
        try:
            self._reread_timestamps()
        except CorruptRecordBatch:
            return  # flushed data is damaged: reading it raises the error
        self.finish()

    # Reading

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Return (position, size) of the first batch not entirely before `offset`; None if there is none."""
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            index = bisect_right(recent, offset)
            position = self._recent_positions[index - 1]
            end = self._recent_positions[index] if index < len(recent) else self.size
            return position, end - position
        try:
            return find_batch(self.file, self.index.lookup(offset), self.size, offset)
        except CorruptRecordBatch as error:
            raise CorruptRecordBatch(f"{self.file_name}: {error}") from None

    def read(
        self, offset: int, max_bytes: int, bound: int | None, min_one_batch: bool, wants_records: bool = False
    ) -> FileSlice | None:
        """Return whole batches from the one that holds `offset` up to the one that holds `bound`; None if
        there are none.

        The slice is cut to `max_bytes` at a known start of a batch, so it may be one index interval shorter.
        With `wants_records` it starts at the first batch with records. If there is none, it is the last
        batch, of `HEADER_SIZE` bytes.
        """
        batch = self.locate(offset)
        if batch is None:
            return None
        position, first_size = batch
        limit = self.size
        if bound is not None and (bound_batch := self.locate(bound)) is not None:
            limit = bound_batch[0]
        if limit <= position:
            return None
        if wants_records and first_size == HEADER_SIZE:
            position, first_size = self._behind_empty(position, limit)
        length = limit - position
        if length > max_bytes:
            if first_size > max_bytes and not min_one_batch:
                return None
            length = max(self._boundary_before(position + max_bytes) - position, first_size)
        descriptor = self.file.descriptor
        return FileSlice(descriptor.number, position, length, descriptor)

    def _behind_empty(self, position: int, limit: int) -> tuple[int, int]:
        """Return (position, size) of the first batch with records, from an empty one at `position` on.

        If all batches before `limit` are empty, it returns the last one.
        """
        size = HEADER_SIZE
        while size == HEADER_SIZE:
            position = self._empty_runs.end(self.file, position, limit)
            if (
                position >= limit
                or (batch := find_batch(self.file, position, limit, self.base_offset)) is None
            ):
                return position - HEADER_SIZE, HEADER_SIZE
            position, size = batch
        return position, size

    def _boundary_before(self, position: int) -> int:
        recent = self._recent_positions
        if recent and position >= recent[0]:
            return recent[bisect_right(recent, position) - 1]
        return self.index.boundary_before(position)

    def is_recent(self, offset: int) -> bool:
        """Return True if the batch that holds `offset` was appended recently, so that its position is in
        memory.
        """
        recent = self._recent_offsets
        return bool(recent) and offset >= recent[0]

    def offset_behind(self, position: int) -> int | None:
        """Return an offset that no batch before `position` reaches, as close as is known; None: the segment's
        end.
        """
        recent = self._recent_positions
        if position >= self.size:
            return None
        if recent and position >= recent[0]:
            return self._recent_offsets[bisect_right(recent, position) - 1]
        return self.index.offset_behind(position)

    def next_offset(self) -> int:
        """Return the offset after the last batch, `base_offset` without one. Reads from the last index entry
        on.
        """
        end = self.base_offset
        for _, header in scan_headers(self.file, self.index.last_position(), self.size):
            end = header.next_offset
        return end

    # Timestamps

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp in the segment, ms; -1 if it is empty or has none."""
        if self._max_timestamp == NOT_READ:
            self._max_timestamp, self._max_timestamp_offset = self.time_index.last_entry()
        return self._max_timestamp

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, ms, from which `segment.ms` counts.

        -1 if the segment has no batch, or the batch has no timestamp.
        """
        if self._first_timestamp == NOT_READ:
            headers = scan_headers(self.file, 0, self.size)
            self._first_timestamp = next((header.max_timestamp for _, header in headers), NO_TIMESTAMP)
        return self._first_timestamp

    def batches_for_timestamp(
        self, timestamp: int, start_offset: int
    ) -> Iterator[tuple[BatchHeader, Buffer]]:
        """Yield batches in which a record from `start_offset` on may be at or after `timestamp` (ms)."""
        offset = max(self.time_index.lookup(timestamp), start_offset)
        for position, header in scan_headers(self.file, self.index.lookup(offset), self.size):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                yield header, self.file.read(position, header.size)

    def _reread_timestamps(self) -> None:
        """Read the timestamps after a truncation: from the time index's last entry, and the batches after
        both indexes.
        """
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last_entry()
        for _, header in scan_headers(self.file, self.index.last_position(), self.size):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
