"""A disk that gets slow or full on request; otherwise its files are the operating system's own.

Nothing is synced to the disk. A killed broker loses nothing by that, and no test covers a power failure.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path

from logd.storage.disk import Buffer, File, PosixDisk, PosixFile


class TroubledDisk(PosixDisk):
    """A disk with faults. `was_used` is True if it had a fault since the last `heal(forget=True)`."""

    def __init__(self) -> None:
        self.was_used = False
        self.delay_s = 0.0
        self.room: int | None = None

    def slow(self, seconds: float) -> None:
        """Delay each write and each sync by `seconds`."""
        self.delay_s, self.was_used = seconds, True

    def fill_up(self, room: int) -> None:
        """Let `room` more bytes be written; later writes fail with ENOSPC."""
        self.room, self.was_used = room, True

    def heal(self, *, forget: bool = False) -> None:
        """Restore the full speed and size."""
        self.delay_s, self.room = 0.0, None
        if forget:
            self.was_used = False

    def sync_folder(self, path: Path) -> None:
        """Do nothing: see the module."""

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return _TroubledFile(os.open(path, flags, 0o644), path, self)


class _TroubledFile(PosixFile):
    __slots__ = ("_disk", "_path")

    def __init__(self, fd: int, path: Path, disk: TroubledDisk) -> None:
        super().__init__(fd)
        self._path = path
        self._disk = disk

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """See `File.write`."""
        disk = self._disk
        if disk.delay_s:
            time.sleep(disk.delay_s)
        if disk.room is None:
            return super().write(position, buffers)
        data = b"".join(buffers)
        fitting = data[: disk.room]
        disk.room -= len(fitting)
        super().write(position, [fitting])
        if len(fitting) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def sync(self) -> None:
        """See the module."""
        if self._disk.delay_s:
            time.sleep(self._disk.delay_s)
