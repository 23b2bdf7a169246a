"""Where `KStream.print` prints: stdout, or a file that all tasks of a process share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


class Printer:
    """A file is made anew by the first task of the process that opens it, and closed by the last."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._users = 0
        self._made = False

    def open(self) -> Callable[[str], None]:
        """What prints a line; call `close` as often as this."""
        if self._path is None:
            return _print_to_stdout
        if self._file is None:
            self._file = self._path.open("a" if self._made else "w", encoding="utf-8", buffering=1)
            self._made = True  # a task that comes back goes on behind what is there
        self._users += 1
        file = self._file
        return lambda line: print(line, file=file)

    def close(self) -> None:
        """One task less prints."""
        if self._file is None:
            return
        self._users -= 1
        if self._users == 0:
            self._file.close()
            self._file = None


def _print_to_stdout(line: str) -> None:
    # Looked up for each line: tests and notebooks put another one in its place.
    print(line, file=sys.stdout, flush=True)
