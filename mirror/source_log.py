"""The source's answers about one partition's log, and how far a copy of it is behind.

The source is asked for its log's end at intervals. Each answer is stored with the time of its request until
the copy has passed it. So the copy is known to hold all that the source had at some time, whatever the
timestamps of records say.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

ANSWERS_MAX = 64
"""Bound of the answers of one partition, an even number. With more, every other one is dropped."""


@dataclass(slots=True)
class SourceLog:
    """Answers of the source on one partition's end. Times are in seconds, all from one clock."""

    silence: str | None = None
    """Why the source did not answer the last request. None if it did."""
    end: int = -1
    """The last stable offset in the last answer, or -1 before it."""
    _answers: deque[tuple[float, int]] = field(default_factory=deque)
    """Times and ends that the copy has not passed yet, oldest first."""
    _complete_at: float | None = None
    """The latest time of which the copy is known to hold everything. None if there is no such time."""

    def answered(self, end: int, now: float) -> None:
        """Add an answer to a request that was sent at `now`."""
        self.silence, self.end = None, end
        if self._answers and self._answers[-1][1] == end:
            self._answers.pop()
        self._answers.append((now, end))
        if len(self._answers) > ANSWERS_MAX:
            # Dropping answers makes `complete_at` earlier, never later. The last answer stays.
            self._answers = deque(list(self._answers)[::2])

    def failed(self, why: str) -> None:
        """Note that the source did not answer a request."""
        self.silence = why

    def complete_at(self, copied: int) -> float | None:
        """Return the latest time at which the source had nothing that is not copied, or None if unknown.

        `copied` is the source offset after the last copied record. It must not fall.
        """
        while self._answers and self._answers[0][1] <= copied:
            self._complete_at = self._answers.popleft()[0]
        return self._complete_at

    def lag_records(self, copied: int, end: int) -> int | None:
        """Return the number of source offsets that are not copied, or None while the source is silent.

        `end` is the log's end in the latest fetched batch.
        """
        return None if self.silence is not None else max(self.end, end, copied) - copied

    def lag_seconds(self, copied: int, end: int, now: float) -> float | None:
        """Return how long ago the copy had everything, 0 if it has everything now, or None if unknown."""
        if not (lag := self.lag_records(copied, end)):
            return lag
        return self.rpo_seconds(copied, now)

    def rpo_seconds(self, copied: int, now: float) -> float | None:
        """Return a bound of what a failover loses now: the age of the newest time that is wholly copied."""
        at = self.complete_at(copied)
        return None if at is None else max(now - at, 0.0)
