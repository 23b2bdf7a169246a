"""A batch that failed as a whole, looked at row by row: good rows go on, bad rows have their errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from connect.errors import RetriableError
from connect.runtime.errors.retries import RetryPolicy
from connect.runtime.errors.stages import StageError

R = TypeVar("R")
Result = TypeVar("Result")


class RowByRow(Generic[R, Result]):
    """A pass over rows. Call `run` in the task's thread until it returns None; wait in between as it says.

    `process` returns the results of a row or raises StageError. A RetriableError as its cause has the row
    tried again, all its stages from the first. `on_failure` is called for each failed try, with True if the
    row is tried again.
    """

    def __init__(
        self,
        rows: Sequence[R],
        process: Callable[[R], Result],
        policy: RetryPolicy,
        on_failure: Callable[[bool], None],
        *,
        stops_at_first: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.good: list[tuple[R, Result]] = []
        """The rows that did not fail, with their results, in order."""
        self.bad: list[tuple[R, StageError]] = []
        """The rows that failed; with `stops_at_first` only the first of them, which ends the pass."""
        self._rows = rows
        self._process = process
        self._policy = policy
        self._on_failure = on_failure
        self._stops_at_first = stops_at_first
        self._clock = clock
        self._index = 0
        self._attempts = 0
        self._began_at = 0.0

    def run(self) -> float | None:
        """Process rows. Return None at the end, or the seconds to wait before the present row's next try."""
        while self._index < len(self._rows):
            row = self._rows[self._index]
            if not self._attempts:
                self._began_at = self._clock()
            try:
                result = self._process(row)
            except StageError as error:
                if (delay := self._delay(error)) is not None:
                    return delay
                self.bad.append((row, error))
                if self._stops_at_first:
                    return None
            else:
                self.good.append((row, result))
            self._index += 1
            self._attempts = 0
        return None

    def _delay(self, error: StageError) -> float | None:
        self._attempts += 1
        delay = None
        if isinstance(error.cause, RetriableError):
            delay = self._policy.delay_seconds(self._attempts, self._clock() - self._began_at)
        self._on_failure(delay is not None)
        return delay
