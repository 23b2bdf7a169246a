"""What the two indexes of a segment share: two rising columns of numbers in a file of fixed-size entries.

An index is read whole when something is first looked up. Appending needs its end only, so that no append
waits for the disk. New entries stay in memory until `save`: what a crash takes, recovery builds again from
the log, and no recovery point passes unsaved entries (see `LogFlusher.start_flush`).

    entries of the index:  those in the file only │ those in memory: `keys`, `values`
                                           _first ┘        0: all are in memory, -1: nobody has looked yet
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from pathlib import Path
from typing import ClassVar

from logd.storage.disk import Disk, File
from logd.storage.jobs import FileWrite

NOT_LOOKED_AT = -1
CHECKED_ENTRIES = 4096
"""Entries at the end that are looked at one by one after a crash, if those before were flushed."""


class IndexFile(ABC):
    """Entries of one segment's index; its file need not exist yet. Methods may raise OSError.

    `keys` is searched; `values` stands beside it. Whoever searches calls `loaded` first.
    """

    __slots__ = (
        "_disk",
        "_first",
        "_is_known",
        "_last",
        "_saved",
        "_saving",
        "base_offset",
        "folder",
        "keys",
        "name",
        "values",
    )

    ENTRY_SIZE: ClassVar[int]

    def __init__(self, disk: Disk, folder: Path, name: str, base_offset: int) -> None:
        self._disk = disk
        self.folder = folder
        self.name = name
        self.base_offset = base_offset
        self.keys, self.values = self._decode(b"")
        self._first = NOT_LOOKED_AT
        self._last: tuple[int, int] | None = None
        self._saved = 0
        self._saving = False
        self._is_known = False

    @property
    def path(self) -> Path:
        """Its file; put together when asked for, since making many partitions at once asks for none."""
        return self.folder / self.name

    def __len__(self) -> int:
        """Number of entries."""
        if self._first < 0:
            self._look_at_end()
        return self._first + len(self.keys)

    def loaded(self) -> array[int]:
        """The keys, read from the file if they are not all in memory."""
        if self._first:
            keys, values = self._decode(self._read())
            if self._first < 0:
                self._saved = len(keys)
            else:
                del keys[self._first :], values[self._first :]
            keys.extend(self.keys)
            values.extend(self.values)
            self.keys, self.values, self._first = keys, values, 0
        return self.keys

    def last(self) -> tuple[int, int] | None:
        """Key and value of the last entry, None without one. Reads no more than that."""
        if self.keys:
            return self.keys[-1], self.values[-1]
        if self._first < 0:
            self._look_at_end()
        return self._last if self._first else None

    def clear(self) -> None:
        """Forget every entry, without reading them first."""
        self.keys, self.values = self._decode(b"")
        self._first = 0
        self._truncate_file(0)

    def rewind(self, end_offset: int) -> None:
        """Keep what was flushed before `end_offset`; what a crash left behind it goes, in the file too."""
        keys, values, offsets = self.loaded(), self.values, self._offsets()
        end = end_offset - self.base_offset
        kept, last_key, last_value = 0, -1, -1
        trusted = len(keys) - CHECKED_ENTRIES
        if trusted > 0 and 0 < offsets[trusted - 1] < offsets[trusted] < end:
            kept, last_key, last_value = trusted, keys[trusted - 1], values[trusted - 1]
        for place in range(kept, len(keys)):
            key, value = keys[place], values[place]
            if offsets[place] >= end or key <= last_key or value <= last_value:
                break
            kept, last_key, last_value = place + 1, key, value
        del keys[kept:], values[kept:]
        self._truncate_file(kept)

    def save(self) -> File:
        """Write new entries to the file, which is returned for `sync` and is the caller's to close."""
        write = self.start_save()
        self.saved()
        if write is None:
            return self._disk.open(self.path)
        if write.data:
            write.file.write(write.position, [write.data])
        return write.file

    def start_save(self) -> FileWrite | None:
        """The write of the new entries, to be made in a thread; None if there are none and the file is there.

        Call `saved` once it is made, and neither `truncate` nor `clear` before.
        """
        start = self._saved
        end = start if self._first < 0 else self._first + len(self.keys)
        if end == start and self._is_known:
            return None
        self._saved = end
        self._saving = self._is_known = True
        data = self._encode(start - self._first) if end > start else b""
        return FileWrite(self._disk.open(self.path), start * self.ENTRY_SIZE, data)

    def saved(self) -> None:
        """The write of `start_save` was made."""
        self._saving = False

    def not_synced(self) -> None:
        """What `save` wrote was not forced to the disk: the next `start_save` does that."""
        self._is_known = False

    def relocate(self, disk: Disk, folder: Path) -> None:
        """The file is in another folder now, with the entries it had: those not saved are written there."""
        self._disk, self.folder = disk, folder
        self._saving = self._is_known = False
        if self.keys:
            self._saved = max(min(self._saved, self._entries_in_file()), self._first)

    def _entries_in_file(self) -> int:
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            return 0
        size = file.size()
        file.close()
        return size // self.ENTRY_SIZE

    def unload(self) -> None:
        """Drop the entries from memory if all are saved; they are read again when needed."""
        if self._first >= 0 and self._saved == self._first + len(self.keys) and not self._saving:
            self._last = self.last()
            self._first = self._saved
            self.keys, self.values = self._decode(b"")

    def _truncate_file(self, entries: int) -> None:
        """Leave no more than this many entries in the file."""
        self._saved = min(self._saved, entries)
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            return
        file.truncate(self._saved * self.ENTRY_SIZE)
        file.close()

    def _look_at_end(self) -> None:
        """Learn how many entries the file has, and its last one."""
        data = self._read(only_last=True)
        keys, values = self._decode(data[-self.ENTRY_SIZE :])
        self._last = (keys[-1], values[-1]) if keys else None

    def _read(self, *, only_last: bool = False) -> bytes:
        """The file's entries, or its last one; a partial entry at the end is left out."""
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            if only_last:
                self._first = self._saved = 0
            return b""
        count = file.size() // self.ENTRY_SIZE
        first = max(count - 1, 0) if only_last else 0
        data = file.read(first * self.ENTRY_SIZE, (count - first) * self.ENTRY_SIZE)
        file.close()
        if only_last:
            self._first = self._saved = count
        return data

    @abstractmethod
    def _offsets(self) -> array[int]:
        """The column of relative offsets."""

    @abstractmethod
    def _decode(self, data: bytes) -> tuple[array[int], array[int]]:
        """Keys and values from the file's bytes."""

    @abstractmethod
    def _encode(self, start: int) -> bytes:
        """The file's bytes of the entries in memory from `start` on."""
