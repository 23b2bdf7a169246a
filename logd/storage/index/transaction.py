"""The transaction index of one segment: the aborted transactions whose abort marker stands in it.

    .txnindex: entries of 34 bytes, big-endian, by rising last offset
        int16  version = 0
        int64  producer id
        int64  first offset of the transaction
        int64  last offset: that of its marker
        int64  last stable offset once the marker was written

Readers of committed records are told of the aborted transactions in what they read and leave them out
(KIP-98). The file comes into being with its first entry; entries are written at once and forced to the disk
by the log's next flush. It is read whole when first needed.
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
    """One entry: `last_offset` is the abort marker's, `last_stable_offset` what it was behind the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_last_offset = attrgetter("last_offset")


class TransactionIndex:
    """Entries of one segment; their file need not exist. Methods may raise OSError, and CorruptRecordBatch
    for a file that makes no sense.
    """

    __slots__ = ("_base_offset", "_disk", "_entries", "_is_being_rebuilt", "_unsynced", "folder", "name")

    def __init__(self, disk: Disk, folder: Path, name: str, base_offset: int) -> None:
        self._disk = disk
        self.folder = folder
        self.name = name
        self._base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = None
        self._unsynced = False
        self._is_being_rebuilt = False

    @property
    def path(self) -> Path:
        """Its file; see `IndexFile.path`."""
        return self.folder / self.name

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries, read from the file if they are not in memory."""
        if self._entries is None:
            self._entries = self._decode(self._read())
        return self._entries

    def relocate(self, disk: Disk, folder: Path) -> None:
        """The file is in another folder now; see `Log.relocate`."""
        self._disk, self.folder = disk, folder

    def append(self, entry: AbortedTransaction) -> None:
        """An abort marker was written at `entry.last_offset`; goes to the file at once."""
        if self._is_being_rebuilt:
            self.entries.append(entry)
            return
        file = self._disk.open(self.path)
        file.write(file.size() // ENTRY_SIZE * ENTRY_SIZE, [_ENTRY.pack(_VERSION, *entry)])
        file.close()
        if self._entries is not None:
            self._entries.append(entry)
        self._unsynced = True

    def collect(self, start: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Add to `found` the transactions with records in [start, end) of the log; True if no later segment
        can have any.
        """
        entries = self.entries
        for index in range(bisect_left(entries, start, key=_last_offset), len(entries)):
            entry = entries[index]
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return True
        return False

    def truncate(self, end_offset: int) -> None:
        """Forget markers from `end_offset` on, and what a crash left of an entry, in the file too."""
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
        """Begin anew, in memory: the file stays as it is until `rebuilt` exchanges it, since a crash before
        that must not leave one that looks whole and lacks entries.
        """
        self._entries, self._is_being_rebuilt = [], True

    def rebuilt(self) -> None:
        """All entries have been appended. Blocks: they are on the disk on return."""
        self._is_being_rebuilt = self._unsynced = False
        if self.entries or self.path.exists():
            data = b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self.entries)
            write_atomically(self._disk, self.path, data)

    def check(self) -> bool:
        """Whether the file holds together; reads it."""
        try:
            data = self._read()
            self._decode(data)
        except CorruptRecordBatch:
            return False
        return len(data) % ENTRY_SIZE == 0

    def save(self) -> File | None:
        """The file if it has to be forced to the disk; it is the caller's to close."""
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
        """The entries up to the first that makes no sense."""
        entries: list[AbortedTransaction] = []
        due = self._base_offset
        for version, *numbers in _ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]):
            entry = AbortedTransaction(*numbers)
            if version != _VERSION or entry.last_offset < due or entry.first_offset >= entry.last_offset:
                break
            entries.append(entry)
            due = entry.last_offset + 1
        return entries
