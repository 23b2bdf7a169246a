"""Files opened for reading only, and the names of segment files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logd.storage.disk import PosixFile


@contextmanager
def open_readonly(path: Path) -> Iterator[PosixFile]:
    """Open a file for reading only; raises OSError. The file may grow meanwhile."""
    file = PosixFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    try:
        yield file
    finally:
        file.close()


def base_offset_of(path: Path) -> int:
    """Return the offset in the name of a segment's file; raises ValueError if there is none."""
    stem = path.name.split(".")[0]
    if not stem.isdecimal():
        raise ValueError("the file's name does not begin with an offset")
    return int(stem)


def beside(path: Path, suffix: str) -> Path:
    """Return the path of the same segment's file with another suffix."""
    return path.with_name(path.name.split(".")[0] + suffix)
