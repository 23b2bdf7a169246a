"""Having the kernel read in what opening logs will ask for, some logs ahead: a cold start waits for many
small reads otherwise, one after the other.

Nothing depends on it: what goes wrong here, opening the log meets again and reports.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from logd.storage.names import LOG_SUFFIX

AHEAD = 64
"""Logs the reading ahead is ahead by, at most."""
TAIL_BYTES = 2 * 1024 * 1024
"""Of a log's last segment: producers are found again from the last snapshot on, batches are checked from the
recovery point on."""


def read_ahead(folders: Sequence[Path]) -> Iterator[Path]:
    """The folders of logs, one by one, each asked for when the one before it was opened."""
    room = threading.Semaphore(AHEAD)
    ended = threading.Event()
    thread = threading.Thread(target=_read, args=(folders, room, ended), name="read-ahead", daemon=True)
    thread.start()
    try:
        for folder in folders:
            yield folder
            room.release()
    finally:
        ended.set()
        room.release()
        thread.join()


def _read(folders: Sequence[Path], room: threading.Semaphore, ended: threading.Event) -> None:
    for folder in folders:
        room.acquire()
        if ended.is_set():
            return
        try:
            names = sorted(os.listdir(folder))
            last = next((name for name in reversed(names) if name.endswith(LOG_SUFFIX)), "")
            for name in names:
                if name == last or not name.endswith(LOG_SUFFIX):
                    _want_tail(f"{folder}/{name}")
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
