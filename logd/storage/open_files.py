"""The bound on open segment files, since descriptors belong to the whole process.

A segment opens its file when it is first used. It is told to `rest` if others need room, or if it was unused
for a while. The order is second chance (the clock algorithm): a segment that was used since its last check is
passed over once.
"""

from __future__ import annotations

import resource
from collections import deque
from typing import Protocol

OPEN_FILES_MAX = 1_000
"""Default bound on segments with an open file, in processes that set none; a broker always sets one."""

UNLIMITED = 1_000_000
"""A bound that is never reached."""


class Sleeper(Protocol):
    """A holder of an open file: a segment."""

    def was_used(self) -> bool:
        """Return True if it was used since the last call."""

    def rest(self) -> None:
        """Release the file, and memory that only saves reading it again."""


class OpenFiles:
    """The holders of open files: at most `limit`, and one more while it is being opened."""

    def __init__(self, limit: int = OPEN_FILES_MAX) -> None:
        self.limit = limit
        self._row: deque[Sleeper] = deque()

    def __len__(self) -> int:
        """Return the number of holders, including those that closed their file without notice."""
        return len(self._row)

    def statistics(self) -> dict[str, int]:
        """Return the number of open files, and their bound."""
        return {"files": len(self._row), "files_max": self.limit}

    def opened(self, holder: Sleeper) -> None:
        """Add `holder`, which has opened its file; others rest if there are too many now."""
        row = self._row
        for _ in range(2 * len(row)):
            if len(row) < self.limit:
                break
            other = row.popleft()
            if other.was_used():
                row.append(other)
            else:
                other.rest()
        row.append(holder)

    def sweep(self) -> int:
        """Let holders rest that were not used since the last sweep; return how many."""
        rested = 0
        for _ in range(len(self._row)):
            holder = self._row.popleft()
            if holder.was_used():
                self._row.append(holder)
            else:
                holder.rest()
                rested += 1
        return rested


def half_of_descriptors() -> int:
    """Return half of the files that this process may open; the other half is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(soft // 2, 1)


OPEN_FILES = OpenFiles()
"""The open files of this process."""
