"""Cleaning one log: the keys of its dirty section are noted, then its segments are rewritten group by group.

The log is only read; what is written stands beside it, under `.cleaned` names. Every batch's CRC is checked,
so that no damage is given a new CRC and passed on as sound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from logd.errors import MillstreamError
from logd.records.decode import read_body
from logd.records.header import BatchHeader, check_crc, read_header
from logd.storage.cleaner.batches import BatchFilter
from logd.storage.cleaner.grouping import groups
from logd.storage.cleaner.messages import Cleaned, Done, Source, Task
from logd.storage.cleaner.offset_map import OffsetMap
from logd.storage.cleaner.spans import record_spans
from logd.storage.cleaner.throttle import Throttle
from logd.storage.cleaner.transactions import Transactions
from logd.storage.cleaner.writing import CleanedSegment, remove_cleaned
from logd.storage.disk import Disk, File
from logd.storage.names import LOG_SUFFIX, offset_name
from logd.storage.scan import scan_batches

READ_BYTES_MIN = 64 * 1024


class Cancelled(MillstreamError):
    """The owner has no use for the result any more."""


class Cleaning:
    """Call `run` once. `report` takes every group as soon as it is whole and on the disk; it may be swapped
    in at once. `is_cancelled` is asked before each batch.
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
        self._folder = Path(task.folder)
        self._disk = disk
        self._report = report
        self._is_cancelled = is_cancelled
        self._throttle = throttle
        self._bytes_read = self._bytes_written = 0

    def run(self) -> Done:
        """Raises OSError, CorruptRecordBatch, Cancelled."""
        task, started = self._task, time.monotonic()
        offsets = self._map_of_keys()
        first_dirty = offsets.latest + 1
        sources = [source for source in task.sources if source.base_offset < first_dirty]
        batches = BatchFilter(task, offsets, transactions := Transactions(task.aborted))
        for group in groups(
            sources,
            segment_bytes=task.segment_bytes,
            segment_index_bytes=task.segment_index_bytes,
            index_interval_bytes=task.index_interval_bytes,
        ):
            self._rewrite(group, batches, transactions)
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
        """Every key's last offset in the dirty section, or in as much of it as the map has room for."""
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
                base = header.base_offset
                for span in record_spans(read_body(batch, 0, header), header.count):
                    key, offset = span[4], base + span[3]
                    if key is not None and offset >= start and not put(key, offset):
                        return False
            offsets.latest = header.last_offset
        return True

    # The segments

    def _rewrite(self, group: list[Source], batches: BatchFilter, transactions: Transactions) -> None:
        """Write what stays of a group as one segment; nothing, if all of a lone segment stays."""
        task, first, end_offset = self._task, group[0], group[-1].end_offset
        written = CleanedSegment(
            self._disk,
            self._folder,
            first.base_offset,
            index_interval=task.index_interval_bytes,
            buffer_bytes=task.buffer_bytes,
        )
        is_changed = len(group) > 1
        transactions.kept.clear()
        try:
            for source in group:
                for header, batch in self._batches(source):
                    kept = batches.filter(header, batch, is_last=header.next_offset == end_offset)
                    if kept is None:
                        is_changed = True
                        continue
                    max_timestamp = header.max_timestamp
                    if kept is not batch:
                        is_changed = True
                        after = read_header(kept)
                        max_timestamp = after.max_timestamp if after.count else -1
                    self._wrote(len(kept))
                    written.append(header, max_timestamp, kept)
            if not is_changed:
                written.abandon()
                remove_cleaned(self._disk, self._folder, first.base_offset)
                return
            for entry in transactions.kept:
                written.add_aborted(entry)
            modified_ms = self._modified_ms(group[-1])
            suffixes = written.finish(modified_ms)
        except BaseException:
            written.abandon()
            raise
        self._report(
            Cleaned(
                base_offset=first.base_offset,
                replaced=[source.base_offset for source in group],
                size=written.size,
                modified_ms=modified_ms,
                suffixes=suffixes,
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
        return self._folder / offset_name(source.base_offset, LOG_SUFFIX)

    def _read(self, size: int) -> None:
        self._bytes_read += size
        if self._throttle is not None:
            self._throttle.count(size)

    def _wrote(self, size: int) -> None:
        self._bytes_written += size
        if self._throttle is not None:
            self._throttle.count(size)
