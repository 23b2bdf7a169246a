"""A disk for tests that fails when told to. Its files are real, so that what was written can be seen."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from logd.storage.disk import Buffer, Descriptor, File, PosixDisk


class FaultyDisk(PosixDisk):
    """Passes everything on, but fails the operations in `failing` ("read", "write", "truncate", "sync",
    "open", "rename", "unlink") with `error`, on paths whose name ends with `suffix`.

    With `room` a write takes that many bytes more before it fails, as a disk that fills up does. `done` lists
    what was carried out, as (operation, file name).
    """

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.error = errno.EIO
        self.suffix = ""
        self.room: int | None = None
        self.done: list[tuple[str, str]] = []

    def fill_up(self, room: int = 0) -> None:
        """Let only `room` more bytes be written; further writes fail with ENOSPC."""
        self.room, self.error = room, errno.ENOSPC

    def check(self, operation: str, path: Path) -> None:
        """Raise if `operation` is to fail on `path`, note it otherwise."""
        if operation in self.failing and path.name.endswith(self.suffix):
            raise OSError(self.error, os.strerror(self.error), str(path))
        self.done.append((operation, path.name))

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        self.check("open", path)
        return FaultyFile(self, path, super().open(path, create=create))

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk.rename`."""
        self.check("rename", source)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        """See `Disk.unlink`."""
        self.check("unlink", path)
        super().unlink(path)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        self.check("sync", path)
        super().sync_folder(path)


class FaultyFile:
    """A file of a `FaultyDisk`."""

    def __init__(self, disk: FaultyDisk, path: Path, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file

    @property
    def descriptor(self) -> Descriptor:
        """See `File.descriptor`."""
        return self._file.descriptor

    def read(self, position: int, length: int) -> bytes:
        """See `File.read`."""
        self._disk.check("read", self._path)
        return self._file.read(position, length)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """See `File.write`."""
        self._disk.check("write", self._path)
        data = b"".join(buffers)
        if self._disk.room is not None:
            fitting = data[: self._disk.room]
            self._disk.room -= len(fitting)
            self._file.write(position, [fitting])
            if len(fitting) < len(data):
                raise OSError(self._disk.error, os.strerror(self._disk.error), str(self._path))
        else:
            self._file.write(position, [data])

    def size(self) -> int:
        """See `File.size`."""
        return self._file.size()

    def truncate(self, size: int) -> None:
        """See `File.truncate`."""
        self._disk.check("truncate", self._path)
        self._file.truncate(size)

    def sync(self) -> None:
        """See `File.sync`."""
        self._disk.check("sync", self._path)
        self._file.sync()

    def close(self) -> None:
        """See `File.close`."""
        self._file.close()
