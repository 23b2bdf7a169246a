"""Dropping files from the page cache, which needs no special rights."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from logd.records import FileSlice
from logd.storage import is_resident

SECONDS = 5


def forget(path: Path) -> bool:
    """Drop a file from memory; whether it is gone. The kernel does not take all of it at once.

    False where the file system keeps its pages (tmpfs), or does not tell.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            if not _in_memory(descriptor):
                return True
        return False
    finally:
        os.close(descriptor)


def _in_memory(descriptor: int) -> bool:
    """Whether a page of the file is."""
    pages = range(0, os.fstat(descriptor).st_size, mmap.PAGESIZE)
    return any(is_resident(FileSlice(descriptor, position, 1)) for position in pages)
