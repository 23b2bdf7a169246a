"""The lock that keeps a second process out of a log folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from logd.storage.errors import FolderLocked
from logd.storage.names import LOCK


class FolderLock:
    """Held from construction to `release`, or to the end of the process however it ends.

    Two kinds of lock, since neither sees the other: `flock` also keeps a second opening in this process out,
    a record lock is what a Java broker takes. The file holds our process id, for the other's error message.
    """

    def __init__(self, folder: Path) -> None:
        """Raises FolderLocked, OSError."""
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            os.close(fd)
            raise FolderLocked(
                folder, f"in use by {f'process {holder}' if holder else 'another process'}"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Let others in."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
