"""Read-ahead for a start: the kernel reads files of the next logs while a log is opened.

Otherwise a cold start would wait for many small reads, one after the other. Errors are ignored here: opening
the log meets and reports them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from logd.storage.names import LOG_SUFFIX

AHEAD = 64
"""Most logs that are read ahead."""
TAIL_BYTES = 2 * 1024 * 1024
"""Bytes of a log's last segment to read: producers are restored from the last snapshot on, and batches
checked from the recovery point on.
"""


def read_ahead(directories: Sequence[Path]) -> Iterator[Path]:
    """Yield the directories of logs, one by one, while a thread reads ahead."""
    room = threading.Semaphore(AHEAD)
    ended = threading.Event()
    thread = threading.Thread(target=_read, args=(directories, room, ended), name="read-ahead", daemon=True)
    thread.start()
    try:
        for directory in directories:
            yield directory
            room.release()
    finally:
        ended.set()
        room.release()
        thread.join()


def _read(directories: Sequence[Path], room: threading.Semaphore, ended: threading.Event) -> None:
    for directory in directories:
        room.acquire()
        if ended.is_set():
            return
        try:
            names = sorted(os.listdir(directory))
            last = next((name for name in reversed(names) if name.endswith(LOG_SUFFIX)), "")
            for name in names:
                if name == last or not name.endswith(LOG_SUFFIX):
                    _want_tail(f"{directory}/{name}")
        except OSError:
            continue


def _want_tail(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        start = max(size - TAIL_BYTES, 0)
        if hasattr(os, "posix_fadvise"):  # not on macOS
            os.posix_fadvise(fd, start, size - start, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(fd)
