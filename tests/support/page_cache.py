"""Dropping files from the page cache, which needs no special rights."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

SECONDS = 30
"""Far more than it takes on a busy machine; only where pages cannot be dropped it is waited for."""


def forget(path: Path) -> bool:
    """Drop a file from memory; whether it is gone. The kernel does not take all of it at once.

    False where the file system keeps its pages (tmpfs), or does not tell.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            if not _in_memory(descriptor):
                return True
            time.sleep(0.01)
        return False
    finally:
        os.close(descriptor)


def _in_memory(descriptor: int) -> bool:
    """Return True if a page of the file is in memory, by mincore(2): a read would start to load it."""
    size = os.fstat(descriptor).st_size
    if not size:
        return False
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(size), pages)
        del first
        return bool(failed) or any(page & 1 for page in pages)
