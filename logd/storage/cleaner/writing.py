"""The files of a cleaned segment: its `.log`, both indexes and the transaction index, all with `.cleaned`."""

from __future__ import annotations

import os
from pathlib import Path

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.header import BatchHeader
from logd.storage.cleaner.messages import AbortedEntry
from logd.storage.disk import Buffer, Disk
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import NO_TIMESTAMP, TimeIndex
from logd.storage.index.transaction import AbortedTransaction, TransactionIndex
from logd.storage.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_name,
)

SYNC_BYTES = 32 * 1024 * 1024
"""Bytes to sync at a time: syncing a whole segment at once would make the log's own fsyncs wait."""
POSITION_MAX = 2**31 - 1


def cleaned_name(base_offset: int, suffix: str) -> str:
    """Return the name of a file of a cleaned segment that is not swapped in yet."""
    return offset_name(base_offset, suffix) + CLEANED_SUFFIX


def cleaned_path(directory: Path, base_offset: int, suffix: str) -> Path:
    """Return the path of that file."""
    return directory / cleaned_name(base_offset, suffix)


def remove_cleaned(disk: Disk, directory: Path, base_offset: int) -> None:
    """Remove the files of an earlier attempt. May raise OSError."""
    for suffix in SEGMENT_SUFFIXES:
        disk.unlink(cleaned_path(directory, base_offset, suffix))


class CleanedSegment:
    """A cleaned segment that is being written: append batches in order, then `finish`. Methods may raise
    OSError.
    """

    def __init__(
        self, disk: Disk, directory: Path, base_offset: int, *, index_interval: int, buffer_bytes: int
    ) -> None:
        remove_cleaned(disk, directory, base_offset)
        self.base_offset = base_offset
        self.size = 0
        self._index_interval = index_interval
        self._buffer_bytes = buffer_bytes
        self._path = cleaned_path(directory, base_offset, LOG_SUFFIX)
        self._file = disk.open(self._path)
        self._index = OffsetIndex(disk, directory, cleaned_name(base_offset, INDEX_SUFFIX), base_offset)
        self._time_index = TimeIndex(
            disk, directory, cleaned_name(base_offset, TIME_INDEX_SUFFIX), base_offset
        )
        self._transactions = TransactionIndex(
            disk, directory, cleaned_name(base_offset, TXN_INDEX_SUFFIX), base_offset
        )
        self._has_transactions = False
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._synced = 0
        self._since_index = 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset

    def append(self, header: BatchHeader, max_timestamp: int, batch: Buffer) -> None:
        """Add a batch with its header; a shortened batch may come with the header from before.

        The batch is copied: a view of a few bytes would keep all bytes in memory that were read with them.
        """
        position, last_offset = self.size, header.last_offset
        if position > POSITION_MAX:
            raise CorruptRecordBatch("a cleaned segment grew beyond 2 GB")
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = max_timestamp, last_offset
        if self._since_index > self._index_interval:
            self._index.append(last_offset, position)
            self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._since_index = 0
        size = len(batch)
        self._since_index += size
        self.size = position + size
        self._pending.append(bytes(batch))
        self._pending_bytes += size
        if self._pending_bytes >= self._buffer_bytes:
            self._write()

    def add_aborted(self, entry: AbortedEntry) -> None:
        """Add an aborted transaction whose marker is in the segment, for readers of committed records."""
        self._transactions.append(AbortedTransaction(*entry))
        self._has_transactions = True

    def finish(self, modified_ms: int) -> list[str]:
        """Write everything and wait until it is on the disk; return the suffixes of the files.

        The file's time is set too: retention of records without timestamps depends on it.
        """
        self._write()
        self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        suffixes = [LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX]
        files = [self._index.save(), self._time_index.save()]
        if self._has_transactions and (file := self._transactions.save()) is not None:
            files.append(file)
            suffixes.append(TXN_INDEX_SUFFIX)
        os.utime(self._path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        for file in (self._file, *files):
            file.sync()
            file.close()
        return suffixes

    def abandon(self) -> None:
        """Close the file. It stays there until the owner removes it."""
        self._file.close()

    def _write(self) -> None:
        if self._pending:
            self._file.write(self.size - self._pending_bytes, self._pending)
            self._pending, self._pending_bytes = [], 0
        if self.size - self._synced >= SYNC_BYTES:
            self._file.sync()
            self._synced = self.size
