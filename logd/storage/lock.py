"""The lock that keeps a second process out of a log directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kafka_client.private_files import FILE_MODE
from logd.storage.errors import DirectoryLocked
from logd.storage.names import LOCK


class DirectoryLock:
    """A lock that is held from construction to `release`, or to the end of the process.

    There are two locks, since neither excludes the other. `flock` also excludes a second open in this
    process; a record lock excludes a Java broker. The file contains the process id, for the error message of
    a second broker.
    """

    def __init__(self, directory: Path) -> None:
        """Take the lock. Raises DirectoryLocked and OSError."""
        fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            os.close(fd)
            raise DirectoryLocked(
                directory, f"in use by {f'process {holder}' if holder else 'another process'}"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
