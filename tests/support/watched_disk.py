"""A disk that notes the thread of each operation, so that a test sees waits in the event loop.

Operations that may wait (docs/design.md) are fsync, deletions, and reads of pages that need not be in memory.
A read within `CACHED_ONLY` raises NotResident instead of waiting.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from logd.storage.disk import CACHED_ONLY, Buffer, Descriptor, File, PosixDisk
from logd.storage.names import SNAPSHOT_SUFFIX

DELETIONS = ("unlink", "remove", "rmdir")
SYNCS = ("fsync", "fdatasync", "sync")
FRAMES = 14


class Wait(NamedTuple):
    """Something that may wait for the disk, and who asked for it."""

    operation: str
    name: str
    stack: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.operation} {self.name}\n    " + "\n    ".join(self.stack)


class WatchedDisk(PosixDisk):
    """`waits` are the operations of the watched thread that may wait; none is noted before `watch`."""

    def __init__(self) -> None:
        self.waits: list[Wait] = []
        self.operations_elsewhere: set[str] = set()
        """Operations in other threads: a test that finds none here watches nothing."""
        self._watched = -1

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Note what goes past the disk as well: `shutil.rmtree`, and fsync and unlink asked of the system."""
        patches = [mock.patch.object(os, name, self._noting(name)) for name in (*DELETIONS, *SYNCS)]
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()

    def watch(self) -> None:
        """From now on nothing this thread asks for may wait."""
        self._watched = threading.get_ident()

    def unwatch(self) -> None:
        """Everything may, again."""
        self._watched = -1

    def note(self, operation: str, name: str) -> None:
        """Note an operation that may wait."""
        if threading.get_ident() != self._watched:
            self.operations_elsewhere.add(operation)
            return
        frames = [
            f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_stack(limit=FRAMES)
            if "/logd/" in frame.filename
        ]
        self.waits.append(Wait(operation, name, tuple(frames)))

    def _noting(self, operation: str) -> Any:
        real = getattr(os, operation)

        def noting(*arguments: Any, **facts: Any) -> Any:
            self.note(operation, str(arguments[0]) if arguments else "")
            return real(*arguments, **facts)

        return noting

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        return _File(self, path, super().open(path, create=create))


class _File:
    """A file of a `WatchedDisk`."""

    def __init__(self, disk: WatchedDisk, path: Path, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file
        self.size = file.size
        self.truncate = file.truncate
        self.sync = file.sync
        self.close = file.close

    @property
    def descriptor(self) -> Descriptor:
        """See `File.descriptor`."""
        return self._file.descriptor

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """See `File.write`. Batches are appended in the event loop; what grows with the producers is not."""
        if self._path.suffix == SNAPSHOT_SUFFIX:
            self._disk.note("write", f"{self._path.parent.name}/{self._path.name}")
        self._file.write(position, buffers)

    def read(self, position: int, length: int) -> bytes:
        """See `File.read`."""
        if length and not CACHED_ONLY.is_on:
            self._disk.note("read", f"{self._path.parent.name}/{self._path.name}")
        return self._file.read(position, length)
