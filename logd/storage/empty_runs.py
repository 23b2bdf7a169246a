"""Where the records go on behind batches without any, which a consumer has no use for.

Compaction keeps the batch with an active producer's last sequence though all its records are gone. Of many
short-lived producers there are many such batches, one behind the other, and a consumer that is answered with
nothing else believes that its next record is too large for an answer.
"""

from __future__ import annotations

from functools import partial

from logd.storage.disk import CACHED_ONLY, File
from logd.storage.errors import NotResident
from logd.storage.scan import end_of_empty

LOOK_BYTES = 256 * 1024
"""Looked over on the event loop, some 4,000 batches; what is behind is a thread's to look over."""
KNOWN_MAX = 64
"""Runs of a segment that are remembered, of those a thread looked over."""


class EmptyRuns:
    """One segment's, which is not cut while this is in use. Methods may raise OSError."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def end(self, file: File, position: int, limit: int) -> int:
        """Up to where there are batches without records from `position` on, at most `limit`.

        A batch without records may stand there, if it was not there when a thread looked: ask again then.
        Raises NotResident where a thread has to look first.
        """
        known = self._ends.get(position)
        if known is not None:
            return min(known, limit)
        if not CACHED_ONLY.is_on:
            return end_of_empty(file, position, limit)
        end = end_of_empty(file, position, limit, LOOK_BYTES)
        if end < limit and end - position >= LOOK_BYTES:
            raise NotResident(partial(self._look_on, file, position, end, limit))
        return end

    def _look_on(self, file: File, position: int, seen: int, limit: int) -> None:
        end = end_of_empty(file, seen, limit)
        if len(self._ends) >= KNOWN_MAX:
            self._ends.clear()
        self._ends[position] = end
