"""Which segments hold an open file, so that few of them do: descriptors are the process's, not a log's.

A segment opens its file when it is first used and is told to `rest` when others need room or nobody has used
it for a while. Second chance (the clock algorithm): one that was used since it was last looked at is passed
over once.
"""

from __future__ import annotations

import resource
from collections import deque
from typing import Protocol

OPEN_FILES_MAX = 1_000
"""Segments with an open file in a process that does not say otherwise; a broker always does."""

UNLIMITED = 1_000_000
"""As many as there may ever be."""


class Sleeper(Protocol):
    """What holds a file: a segment."""

    def was_used(self) -> bool:
        """Whether it was used since this was last asked."""

    def rest(self) -> None:
        """Let go of the file, and of what memory holds only to save reading it again."""


class OpenFiles:
    """At most `limit` holders, and one more while it is being opened. Knows nothing of whose they are."""

    def __init__(self, limit: int = OPEN_FILES_MAX) -> None:
        self.limit = limit
        self._row: deque[Sleeper] = deque()

    def __len__(self) -> int:
        """Holders of an open file, and those that were closed since without a word."""
        return len(self._row)

    def statistics(self) -> dict[str, int]:
        """open files, and their bound."""
        return {"files": len(self._row), "files_max": self.limit}

    def opened(self, holder: Sleeper) -> None:
        """`holder` has opened its file; others close theirs if there are too many now."""
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
        """Have those rest that were not used since the last sweep; how many."""
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
    """Half of the files that this process may open now; the other half is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(soft // 2, 1)


OPEN_FILES = OpenFiles()
"""The process's."""
