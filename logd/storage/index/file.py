"""The base of a segment's two indexes: two rising columns of numbers in a file of fixed-size entries.

An index is read whole at the first lookup. Appends only need its end, so that no append waits for the disk.
New entries stay in memory until `save`. Recovery builds entries again that a crash lost, from the log: no
recovery point is after unsaved entries (see `LogFlusher.start_flush`).

    entries of the index:  those in the file only │ those in memory: `keys`, `values`
                                           _first ┘        0: all are in memory, -1: the file was not read yet
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
"""Entries at the end that are checked one by one after a crash, if those before were flushed."""


class IndexFile(ABC):
    """Entries of one segment's index; its file need not exist yet. Methods may raise OSError.

    `keys` is searched; `values` has the values at the same places. Call `loaded` before searching.
    """

    __slots__ = (
        "_disk",
        "_first",
        "_is_known",
        "_last",
        "_saved",
        "_saving",
        "base_offset",
        "directory",
        "keys",
        "name",
        "values",
    )

    ENTRY_SIZE: ClassVar[int]

    def __init__(self, disk: Disk, directory: Path, name: str, base_offset: int) -> None:
        self._disk = disk
        self.directory = directory
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
        """The index's file. The path is built on demand, since many new partitions never need it."""
        return self.directory / self.name

    def __len__(self) -> int:
        """Return the number of entries."""
        if self._first < 0:
            self._look_at_end()
        return self._first + len(self.keys)

    def loaded(self) -> array[int]:
        """Return the keys, read from the file if they are not all in memory."""
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
        """Return key and value of the last entry, None without one. Reads only that entry."""
        if self.keys:
            return self.keys[-1], self.values[-1]
        if self._first < 0:
            self._look_at_end()
        return self._last if self._first else None

    def clear(self) -> None:
        """Remove every entry, without reading them first."""
        self.keys, self.values = self._decode(b"")
        self._first = 0
        self._truncate_file(0)

    def rewind(self, end_offset: int) -> None:
        """Keep entries that were flushed before `end_offset`; remove later ones that a crash left, in the
        file too.
        """
        keys, values, offsets = self.loaded(), self.values, self._offsets()
        end = end_offset - self.base_offset
        count, last_key, last_value = 0, -1, -1
        trusted = len(keys) - CHECKED_ENTRIES
        if trusted > 0 and 0 < offsets[trusted - 1] < offsets[trusted] < end:
            count, last_key, last_value = trusted, keys[trusted - 1], values[trusted - 1]
        for place in range(count, len(keys)):
            key, value = keys[place], values[place]
            if offsets[place] >= end or key <= last_key or value <= last_value:
                break
            count, last_key, last_value = place + 1, key, value
        del keys[count:], values[count:]
        self._truncate_file(count)

    def save(self) -> File:
        """Write new entries to the file and return it: the caller syncs and closes it."""
        write = self.start_save()
        self.saved()
        if write is None:
            return self._disk.open(self.path)
        if write.data:
            write.file.write(write.position, [write.data])
        return write.file

    def start_save(self) -> FileWrite | None:
        """Return the write of the new entries, to be made in a thread; None if the file exists and nothing is
        new.

        Call `saved` after the write. Do not call `truncate` or `clear` before.
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
        """Record that the write of `start_save` was made."""
        self._saving = False

    def not_synced(self) -> None:
        """Have the next `start_save` sync the file: what `save` wrote was not synced."""
        self._is_known = False

    def relocate(self, disk: Disk, directory: Path) -> None:
        """Use the file in another directory, which has the same entries; write unsaved ones there."""
        self._disk, self.directory = disk, directory
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
        """Truncate the file to at most this many entries."""
        self._saved = min(self._saved, entries)
        try:
            file = self._disk.open(self.path, create=False)
        except FileNotFoundError:
            return
        file.truncate(self._saved * self.ENTRY_SIZE)
        file.close()

    def _look_at_end(self) -> None:
        """Read the number of entries in the file, and the last one."""
        data = self._read(only_last=True)
        keys, values = self._decode(data[-self.ENTRY_SIZE :])
        self._last = (keys[-1], values[-1]) if keys else None

    def _read(self, *, only_last: bool = False) -> bytes:
        """Return the file's entries, or its last one, without a partial entry at the end."""
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
        """Return the column of relative offsets."""

    @abstractmethod
    def _decode(self, data: bytes) -> tuple[array[int], array[int]]:
        """Return keys and values from the file's bytes."""

    @abstractmethod
    def _encode(self, start: int) -> bytes:
        """Return the file's bytes of the entries in memory from `start` on."""
