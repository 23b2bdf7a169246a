"""The transaction index of one segment: the aborted transactions whose abort marker is in it.

    .txnindex: entries of 34 bytes, big-endian, by rising last offset
        int16  version = 0
        int64  producer id
        int64  first offset of the transaction
        int64  last offset: that of its marker
        int64  last stable offset once the marker was written

A fetch of committed records returns the aborted transactions in its range, and the client skips their records
(KIP-98). The file is created with its first entry. Entries are written at once, and synced by the log's next
flush. The file is read whole when first needed.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from logd.storage.disk import Disk, File, write_atomically

_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """An entry: `last_offset` is the abort marker's, `last_stable_offset` the value after the marker was
    written.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_last_offset = attrgetter("last_offset")


class TransactionIndex:
    """The transaction index of one segment; its file need not exist.

    Methods may raise OSError, and CorruptRecordBatch for a file with invalid entries.
    """

    __slots__ = ("_base_offset", "_disk", "_entries", "_is_being_rebuilt", "_unsynced", "directory", "name")

    def __init__(self, disk: Disk, directory: Path, name: str, base_offset: int) -> None:
        self._disk = disk
        self.directory = directory
        self.name = name
        self._base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = None
        self._unsynced = False
        self._is_being_rebuilt = False

    @property
    def path(self) -> Path:
        """The index's file; see `IndexFile.path`."""
        return self.directory / self.name

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries, read from the file if they are not in memory."""
        if self._entries is None:
            self._entries = self._decode(self._read())
        return self._entries

    def relocate(self, disk: Disk, directory: Path) -> None:
        """Use the file in another directory; see `Log.relocate`."""
        self._disk, self.directory = disk, directory

    def append(self, entry: AbortedTransaction) -> None:
        """Add the entry of an abort marker at `entry.last_offset`, in the file too."""
        if self._is_being_rebuilt:
            self.entries.append(entry)
            return
        file = self._disk.open(self.path)
        file.write(file.size() // ENTRY_SIZE * ENTRY_SIZE, [_ENTRY.pack(_VERSION, *entry)])
        file.close()
        if self._entries is not None:
            self._entries.append(entry)
        self._unsynced = True

    def collect(self, start: int, end: int, into: list[AbortedTransaction]) -> bool:
        """Add the transactions with records in [start, end) to `into`; return True if no later segment has
        any.
        """
        entries = self.entries
        for index in range(bisect_left(entries, start, key=_last_offset), len(entries)):
            entry = entries[index]
            if entry.first_offset < end:
                into.append(entry)
            if entry.last_stable_offset >= end:
                return True
        return False

    def truncate(self, end_offset: int) -> None:
        """Remove markers from `end_offset` on, and a partial entry after a crash, in the file too."""
        if self._is_being_rebuilt:
            return
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            self._entries = []
            return
        entries = self._whole_entries(file.read(0, file.size()))
        del entries[bisect_left(entries, end_offset, key=_last_offset) :]
        if file.size() != len(entries) * ENTRY_SIZE:
            file.truncate(len(entries) * ENTRY_SIZE)
            self._unsynced = True
        file.close()
        self._entries = entries

    def rebuild(self) -> None:
        """Start again without entries, in memory only, until `rebuilt` replaces the file.

        A crash before that must not leave a file that looks whole but lacks entries.
        """
        self._entries, self._is_being_rebuilt = [], True

    def rebuilt(self) -> None:
        """Write the appended entries to the file. Blocks until they are on the disk."""
        self._is_being_rebuilt = self._unsynced = False
        if self.entries or self.path.exists():
            data = b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self.entries)
            write_atomically(self._disk, self.path, data)

    def check(self) -> bool:
        """Return True if the file's entries are valid and whole; reads the file."""
        try:
            data = self._read()
            self._decode(data)
        except CorruptRecordBatch:
            return False
        return len(data) % ENTRY_SIZE == 0

    def save(self) -> File | None:
        """Return the file if it must be synced, else None; the caller closes it."""
        if not self._unsynced:
            return None
        self._unsynced = False
        return self._disk.open(self.path)

    def unload(self) -> None:
        """Drop the entries from memory; they are read again when needed."""
        self._entries = None

    def _read(self) -> bytes:
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            return b""
        data = file.read(0, file.size())
        file.close()
        return data

    def _decode(self, data: bytes) -> list[AbortedTransaction]:
        entries = self._whole_entries(data)
        if len(entries) != len(data) // ENTRY_SIZE:
            raise CorruptRecordBatch(f"{self.path.name}: entry {len(entries)} makes no sense")
        return entries

    def _whole_entries(self, data: bytes) -> list[AbortedTransaction]:
        """Return the entries before the first invalid one."""
        entries: list[AbortedTransaction] = []
        due = self._base_offset
        for version, *numbers in _ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]):
            entry = AbortedTransaction(*numbers)
            if version != _VERSION or entry.last_offset < due or entry.first_offset >= entry.last_offset:
                break
            entries.append(entry)
            due = entry.last_offset + 1
        return entries
