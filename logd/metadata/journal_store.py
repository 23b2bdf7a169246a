"""Cluster metadata of a standalone broker, in one journal file in its first log directory.

    metadata.journal    a line per write: CRC-32 of the JSON as 8 hex digits, a space, a JSON list of changes

A crash in the middle of a write leaves a torn last line, which was not acknowledged; `load` cuts it off. The
journal is rewritten through a temporary file and a rename when most of its changes are outdated.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Protocol

from logd.metadata.image import Change, ClusterImage

FILE_NAME = "metadata.journal"
MOVED_NAME = FILE_NAME + ".moved"
"""The name of a journal after all its contents were moved to ZooKeeper."""
COMPACT_AT_LINES = 200
"""A journal with fewer lines is not compacted."""

log = logging.getLogger("logd.metadata")


class JournalFile(Protocol):
    """An open file; every method may raise OSError."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``position``."""

    def write(self, position: int, buffers: Sequence[bytes]) -> None:
        """Write all of the buffers at a position, one after another."""

    def size(self) -> int:
        """Return the size of the file in bytes."""

    def truncate(self, size: int) -> None:
        """Truncate the file to this size in bytes."""

    def sync(self) -> None:
        """Wait until the written bytes are on the disk."""

    def close(self) -> None:
        """Close the file."""


class JournalDisk(Protocol):
    """The operations on names of files; every method may raise OSError."""

    def open(self, path: Path) -> JournalFile:
        """Open a file for reading and writing; create it if it does not exist."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file, replacing any file of the new name."""

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk."""


class JournalStore:
    """A ``MetadataStore`` in the given directory; ``executor`` runs fsync."""

    def __init__(self, directory: Path, disk: JournalDisk, executor: Executor | None = None) -> None:
        self._path = directory / FILE_NAME
        self._disk = disk
        self._executor = executor
        self._file: JournalFile | None = None
        self._end = 0
        self._lines = 0
        self._writing = asyncio.Lock()

    def load(self) -> ClusterImage:
        """Return the image that the journal's changes build, and open the journal for writing.

        A torn line at the end is cut off. Raises OSError.
        """
        image = ClusterImage()
        file = self._file = self._disk.open(self._path)
        data = file.read(0, file.size())
        good = 0
        while (end := data.find(b"\n", good)) >= 0:
            changes = _parse_line(data[good:end])
            if changes is None:
                break
            for change in changes:
                image.apply(change)
            good = end + 1
            self._lines += 1
        if good < len(data):
            log.warning("%s: cut off %d bytes after a torn write", self._path, len(data) - good)
            file.truncate(good)
        # The broker acts on these changes. A killed broker may have left them unsynced, so sync them: a power
        # loss must not undo them.
        file.sync()
        self._disk.sync_folder(self._path.parent)
        self._end = good
        return image

    def compact(self, image: ClusterImage) -> None:
        """Rewrite the journal if it has become long.

        It blocks the caller for an fsync, so call it at the start only.
        """
        changes = image.as_changes()
        if self._lines < max(COMPACT_AT_LINES, 2 * len(changes)):
            return
        temporary = self._path.with_suffix(".tmp")
        data = b"".join(_line([change]) for change in changes)
        file = self._disk.open(temporary)
        file.truncate(0)
        file.write(0, [data])
        file.sync()
        self._disk.rename(temporary, self._path)
        self.close()
        self._file, self._end, self._lines = file, len(data), len(changes)
        self._disk.sync_folder(self._path.parent)

    async def write(self, changes: list[Change]) -> None:
        """Append one line and sync the file; on an error the journal is unchanged. Raises OSError."""
        async with self._writing:
            file = self._file
            assert file is not None, "load comes first"
            line = _line(changes)
            try:
                file.write(self._end, [line])
                await asyncio.get_running_loop().run_in_executor(self._executor, file.sync)
            except OSError:
                file.truncate(self._end)
                raise
            self._end += len(line)
            self._lines += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _line(changes: list[Change]) -> bytes:
    from msgspec import json  # a new journal is empty

    encoded = json.encode(changes)
    return b"%08x %b\n" % (zlib.crc32(encoded), encoded)


def _parse_line(line: bytes) -> list[Change] | None:
    encoded = line[9:]
    if line[:8] != b"%08x" % zlib.crc32(encoded):
        return None
    from msgspec import json

    changes: list[Change] = json.decode(encoded)
    return changes
