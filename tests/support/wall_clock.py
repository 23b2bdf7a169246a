"""A wall clock of a process's own, which a test sets while it runs; all other clocks go on as they do.

    clock = WallClock(tmp_path)
    broker.environment = clock.environment
    broker.start()
    clock.set_by(timedelta(hours=5))

Debian's libfaketime (0.9.10) does not do for that: with the monotonic clock left alone, Python's `time.sleep`
fails under it by EINVAL. Files keep the kernel's times.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "wall_clock.c"


class WallClock:
    """Files of it are in `folder`."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("cc") is None:
            pytest.skip("cc is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        self._offset = folder / "offset"
        library = folder / "wall_clock.so"
        self.set_by(timedelta())
        line = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        done = subprocess.run(line, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_OFFSET": str(self._offset)}

    def set_by(self, ahead: timedelta) -> None:
        """From now on it is so much ahead of the true time; behind it if that is negative."""
        with self._offset.open("r+b" if self._offset.exists() else "wb") as file:
            file.write((ahead // timedelta(microseconds=1) * 1000).to_bytes(8, sys.byteorder, signed=True))
