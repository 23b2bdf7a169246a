"""The cleaning of one log: collect the keys of its dirty section, then rewrite its segments group by group.

The log itself is only read; new files are written next to it, under `.cleaned` names. Every batch's CRC is
checked, so that damaged records never get a new, valid CRC. See `grouping` for the groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka_client.errors import MillstreamError
from kafka_client.records.header import NO_TIMESTAMP, BatchHeader, check_crc, read_header
from logd.storage.cleaner.batches import BatchFilter, records_of
from logd.storage.cleaner.grouping import DeferredBatches, Group, bytes_max
from logd.storage.cleaner.messages import Cleaned, Done, Source, Task
from logd.storage.cleaner.offset_map import OffsetMap
from logd.storage.cleaner.throttle import Throttle
from logd.storage.cleaner.transactions import Transactions
from logd.storage.cleaner.writing import CleanedSegment, remove_cleaned
from logd.storage.disk import Buffer, Disk, File
from logd.storage.names import LOG_SUFFIX, offset_name
from logd.storage.scan import scan_batches

READ_BYTES_MIN = 64 * 1024


class Cancelled(MillstreamError):
    """The owner of the task no longer needs the result."""


class Cleaning:
    """The cleaning of one log, by one call of `run`.

    `report` is called with every group as soon as it is whole and on the disk; it may be swapped in at once.
    `is_cancelled` is called before each batch.
    """

    def __init__(
        self,
        task: Task,
        disk: Disk,
        report: Callable[[Cleaned], None],
        *,
        is_cancelled: Callable[[], bool] = lambda: False,
        throttle: Throttle | None = None,
    ) -> None:
        self._task = task
        self._directory = Path(task.directory)
        self._disk = disk
        self._report = report
        self._is_cancelled = is_cancelled
        self._throttle = throttle
        self._bytes_read = self._bytes_written = 0
        self._writing: CleanedSegment | None = None
        self._filter: BatchFilter | None = None

    def run(self) -> Done:
        """Clean the log. Raises OSError, CorruptRecordBatch and Cancelled."""
        task, started = self._task, time.monotonic()
        offsets = self._map_of_keys()
        first_dirty = offsets.latest + 1
        sources = [source for source in task.sources if source.base_offset < first_dirty]
        batches = self._filter = BatchFilter(task, offsets, transactions := Transactions(task.aborted))
        group: Group | None = None
        try:
            for source in sources:
                group = self._clean(source, group, batches, transactions)
            if group is not None:
                self._finish(group)
        except BaseException:
            if self._writing is not None:
                self._writing.abandon()
            raise
        return Done(
            first_dirty=first_dirty,
            bytes_read=self._bytes_read,
            bytes_written=self._bytes_written,
            records_read=batches.records_read,
            records_kept=batches.records_kept,
            keys=offsets.count,
            seconds=time.monotonic() - started,
        )

    # The keys

    def _map_of_keys(self) -> OffsetMap:
        """Return every key's last offset in the dirty section, or in as much of it as fits into the map."""
        task = self._task
        start = task.first_dirty
        dirty = [source for source in task.sources if source.end_offset > start]
        span = dirty[-1].end_offset - start if dirty else 0
        offsets = OffsetMap(task.map_bytes, task.map_load_factor, span)
        offsets.latest = start - 1
        transactions = Transactions(entry for entry in task.aborted if entry[2] >= start)
        for source in dirty:
            if not self._note_keys(source, offsets, transactions):
                break
            offsets.latest = source.end_offset - 1
        return offsets

    def _note_keys(self, source: Source, offsets: OffsetMap, transactions: Transactions) -> bool:
        start, put = self._task.first_dirty, offsets.put
        for header, batch in self._batches(source):
            if header.last_offset < start:
                continue
            if header.is_control:
                transactions.control(header, batch)
            elif not transactions.data(header):
                reader = records_of(self._task, header, batch)
                while spans := reader.spans():
                    for _, _, offset, _, key, _ in spans:
                        if key is not None and offset >= start and not put(key, offset):
                            return False
            offsets.latest = header.last_offset
        return True

    # The segments

    def _clean(
        self, source: Source, group: Group | None, batches: BatchFilter, transactions: Transactions
    ) -> Group:
        """Append the rest of a segment to `group` if it fits, else to a new group; return that group."""
        if group is None or group.is_full:
            group = self._next_group(source, group)
        is_open = bool(group.sources) and not group.has_room(source)
        deferred, is_changed = DeferredBatches(self._task.buffer_bytes), False
        for header, batch in self._batches(source):
            remaining = batches.filter(header, batch)
            is_changed |= remaining is not batch
            if remaining is None:
                continue
            self._wrote(len(remaining))
            target = deferred if is_open else group
            target.append(header, _max_timestamp(header, batch, remaining), remaining)
            if is_open and not group.takes(deferred):
                group, is_open = self._next_group(source, group), False
                self._append(deferred, group)
        if is_open:
            self._append(deferred, group)
        group.join(source, transactions.index_entries, is_changed=is_changed)
        transactions.index_entries.clear()
        return group

    def _append(self, deferred: DeferredBatches, group: Group) -> None:
        for batch in deferred.batches:
            group.append(*batch)

    def _next_group(self, source: Source, group: Group | None) -> Group:
        """Finish `group` and start one with `source`."""
        if group is not None:
            self._finish(group)
        task = self._task
        self._writing = CleanedSegment(
            self._disk,
            self._directory,
            source.base_offset,
            index_interval=task.index_interval_bytes,
            buffer_bytes=task.buffer_bytes,
        )
        return Group(self._writing, bytes_max(task))

    def _finish(self, group: Group) -> None:
        """Sync a group to the disk and report it. A single segment that is unchanged is left as it is."""
        written = group.written
        if not group.is_changed:
            written.abandon()
            remove_cleaned(self._disk, self._directory, written.base_offset)
            return
        modified_ms = self._modified_ms(group.sources[-1])
        suffixes = written.finish(modified_ms)
        self._report(
            Cleaned(
                base_offset=written.base_offset,
                replaced=[source.base_offset for source in group.sources],
                size=written.size,
                modified_ms=modified_ms,
                suffixes=suffixes,
                removal_offset=0 if self._filter is None else self._filter.removal_offset,
            )
        )

    # Files

    def _batches(self, source: Source) -> Iterator[tuple[BatchHeader, memoryview]]:
        file = self._open(source)
        try:
            chunk_bytes = max(self._task.buffer_bytes, READ_BYTES_MIN)
            for _, header, batch in scan_batches(file, 0, source.size, chunk_bytes=chunk_bytes):
                if self._is_cancelled():
                    raise Cancelled("cancelled")
                self._read(header.size)
                check_crc(batch, 0, header)
                yield header, batch
        finally:
            file.close()

    def _open(self, source: Source) -> File:
        return self._disk.open(self._path(source), create=False)

    def _modified_ms(self, source: Source) -> int:
        return self._path(source).stat().st_mtime_ns // 1_000_000

    def _path(self, source: Source) -> Path:
        return self._directory / offset_name(source.base_offset, LOG_SUFFIX)

    def _read(self, size: int) -> None:
        self._bytes_read += size
        if self._throttle is not None:
            self._throttle.count(size)

    def _wrote(self, size: int) -> None:
        self._bytes_written += size
        if self._throttle is not None:
            self._throttle.count(size)


def _max_timestamp(header: BatchHeader, batch: memoryview, remaining: Buffer) -> int:
    """Return the largest timestamp of a batch's remaining records, -1 if there are none."""
    after = header if remaining is batch else read_header(remaining)
    return after.max_timestamp if after.count else NO_TIMESTAMP
