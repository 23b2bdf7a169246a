"""Disks that take no more: by the kernel's limit of file sizes, or really, where mounting is allowed."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CHUNK = bytes(1 << 16)


def largest_file(folder: Path) -> int:
    """Return the size in bytes of the largest file below a folder. Files may be deleted meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            size = max(size, path.stat().st_size)
    return size


def limit_files(pid: int, size: int) -> None:
    """From now on the process can make no file larger than this: a write beyond it is cut short, and the next
    one fails, as with ENOSPC.
    """
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


@contextlib.contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Something is mounted at a folder; the test is skipped where that is not allowed."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """There is no room left on the volume of a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(CHUNK)
    try:
        yield
    finally:
        ballast.unlink()
