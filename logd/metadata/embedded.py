"""Cluster metadata of a single broker, in one journal file in its first log folder.

    metadata.journal    one write per line: CRC-32 of the JSON as 8 hex digits, a space, a JSON list of
    changes

A torn last line (a crash in the middle of a write, never acknowledged) is cut off at load. The journal is
rewritten through a temporary file and a rename when most of it is history.
"""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from concurrent.futures import Executor
from pathlib import Path

import msgspec

from logd.metadata.image import Change, ClusterImage

FILE_NAME = "metadata.journal"
COMPACT_AT_LINES = 200
"""A journal shorter than this is left as it is."""

log = logging.getLogger("logd.metadata")


class EmbeddedStore:
    """A ``MetadataStore`` in the folder given; fsync runs in ``executor``."""

    def __init__(self, folder: Path, executor: Executor | None = None) -> None:
        self._path = folder / FILE_NAME
        self._executor = executor
        self._fd = -1
        self._lines = 0
        self._writing = asyncio.Lock()

    def load(self) -> ClusterImage:
        """Replay the journal, cutting off a torn tail; opens it for writing."""
        image = ClusterImage()
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        data = self._path.read_bytes()
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
            os.ftruncate(self._fd, good)
        os.lseek(self._fd, good, os.SEEK_SET)
        return image

    def compact(self, image: ClusterImage) -> None:
        """Rewrite the journal when it has become long; blocks for one fsync, so call it at start only."""
        changes = image.as_changes()
        if self._lines < max(COMPACT_AT_LINES, 2 * len(changes)):
            return
        temporary = self._path.with_suffix(".tmp")
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        _write_all(fd, b"".join(_line([change]) for change in changes))
        os.fsync(fd)
        temporary.replace(self._path)
        os.close(self._fd)
        self._fd, self._lines = fd, len(changes)
        _sync_folder(self._path.parent)

    async def write(self, changes: list[Change]) -> None:
        """Append one line and force it to disk; on an error the journal is as it was before."""
        async with self._writing:
            before = os.lseek(self._fd, 0, os.SEEK_CUR)
            try:
                _write_all(self._fd, _line(changes))
                await asyncio.get_running_loop().run_in_executor(self._executor, os.fdatasync, self._fd)
            except OSError:
                os.ftruncate(self._fd, before)
                os.lseek(self._fd, before, os.SEEK_SET)
                raise
            self._lines += 1

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _line(changes: list[Change]) -> bytes:
    encoded = msgspec.json.encode(changes)
    return b"%08x %b\n" % (zlib.crc32(encoded), encoded)


def _parse_line(line: bytes) -> list[Change] | None:
    encoded = line[9:]
    if line[:8] != b"%08x" % zlib.crc32(encoded):
        return None
    changes: list[Change] = msgspec.json.decode(encoded)
    return changes


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
