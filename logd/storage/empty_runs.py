"""Runs of batches without records, which a consumer does not need.

Compaction keeps the batch with an active producer's last sequence even if all its records are removed. With
many short-lived producers there are many such batches in a row. A consumer that only gets such batches
concludes that its next record is too large for a response.
"""

from __future__ import annotations

from functools import partial

from logd.storage.disk import CACHED_ONLY, File
from logd.storage.errors import NotResident
from logd.storage.scan import end_of_empty

LOOK_BYTES = 256 * 1024
"""Bytes that are checked on the event loop, some 4,000 batches; a thread checks the rest."""
KNOWN_MAX = 64
"""Most runs of a segment that are remembered after a thread has checked them."""


class EmptyRuns:
    """The runs of one segment, which must not be truncated meanwhile. Methods may raise OSError."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def end(self, file: File, position: int, limit: int) -> int:
        """Return the end of the run of batches without records that starts at `position`, at most `limit`.

        A batch without records may start there if it was appended after a thread's check: call again then.
        Raises NotResident if a thread has to check first.
        """
        end = self._ends.get(position)
        if end is not None:
            return min(end, limit)
        if not CACHED_ONLY.is_on:
            return end_of_empty(file, position, limit)
        end = end_of_empty(file, position, limit, LOOK_BYTES)
        if end < limit and end - position >= LOOK_BYTES:
            raise NotResident(partial(self._look_on, file, position, end, limit))
        return end

    def _look_on(self, file: File, position: int, checked_to: int, limit: int) -> None:
        end = end_of_empty(file, checked_to, limit)
        if len(self._ends) >= KNOWN_MAX:
            self._ends.clear()
        self._ends[position] = end
