"""Schedules: callbacks every interval of stream time or wall clock, fired by the task when due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Literal

PunctuationType = Literal["stream_time", "wall_clock"]


class Punctuation:
    """A callback on a schedule; a jump over several intervals fires once."""

    def __init__(self, due: int, interval_ms: int, callback: Callable[[int], None]) -> None:
        self.due = due
        self.interval_ms = interval_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Stop firing."""
        self.cancelled = True

    def go_on(self, now: int) -> None:
        """Set `due` to the first time after ``now`` that is whole intervals from the last one."""
        self.due += ((now - self.due) // self.interval_ms + 1) * self.interval_ms


class PunctuationQueue:
    """The schedules of one clock, by due time, then in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Punctuation]] = []
        self._numbers = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, punctuation: Punctuation) -> None:
        """Add a schedule."""
        heappush(self._heap, (punctuation.due, next(self._numbers), punctuation))

    def due(self, now: int) -> Iterator[Callable[[int], None]]:
        """Yield the callbacks to call with ``now``; a callback may add or cancel schedules meanwhile."""
        while self._heap and self._heap[0][0] <= now:
            punctuation = heappop(self._heap)[2]
            if punctuation.cancelled:
                continue
            yield punctuation.callback
            if not punctuation.cancelled:
                punctuation.go_on(now)
                self.add(punctuation)
