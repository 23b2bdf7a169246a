"""The output of `KStream.print`: stdout, or a file that all tasks of a process share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO


class Printer:
    """The output of a node: stdout if ``path`` is None.

    The first task of the process that opens the file empties it, and the last one closes it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._users = 0
        self._is_emptied = False

    def open(self) -> Callable[[str], None]:
        """Return a function that prints a line; call `close` as often as this method."""
        if self._path is None:
            return _print_to_stdout
        if self._file is None:
            self._file = self._path.open("a" if self._is_emptied else "w", encoding="utf-8", buffering=1)
            self._is_emptied = True  # a task that is opened again appends
        self._users += 1
        file = self._file
        return lambda line: print(line, file=file)

    def close(self) -> None:
        """End a task's use; close the file after the last one."""
        if self._file is None:
            return
        self._users -= 1
        if self._users == 0:
            self._file.close()
            self._file = None


def _print_to_stdout(line: str) -> None:
    # `sys.stdout` is looked up for each line, because tests and notebooks replace it.
    print(line, file=sys.stdout, flush=True)
