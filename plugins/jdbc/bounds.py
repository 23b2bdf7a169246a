"""The bound of a poll: rows up to it are final, as no open transaction can still commit one.

Ids and timestamps are assigned before a commit, so a poll may see id 11 while id 10 is not committed. The
source must not go beyond 10 then, or it would never read it. So a poll reads in three steps, in this order:

1. It reads a mark: the greatest id that is visible, or the database's clock.
2. It observes which transactions are open that may have an id or timestamp up to the mark.
3. Once each of these has ended, whatever has begun since, the mark is the bound: a statement that begins now
   sees every row up to it.

Marks whose transactions are open wait in a short queue. So a database that always has some transaction open
is followed with the delay of its longest transaction.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

MARKS_MAX = 64
"""Marks that wait at most; then no new one is read before one of them has become the bound."""
_WARNING_SECONDS = 60.0
_log = logging.getLogger(__name__)


class Observation(Protocol):
    """The transactions that are open at one moment."""

    @property
    def open(self) -> frozenset[Hashable]:
        """Identities of the open transactions, each never used twice while the source runs."""
        ...

    def remaining(self, waiting: frozenset[Hashable], before: Observation) -> frozenset[Hashable]:
        """Return those of an earlier observation that may be open still.

        `before` is the observation that came directly before this one.
        """
        ...


@dataclass(slots=True)
class _Mark:
    value: Any
    waiting: frozenset[Hashable]
    since: float


class Bound:
    """The greatest mark before which everything is final, of one table."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Create a bound without marks; `name` is the table's, for log lines."""
        self._name, self._clock = name, clock
        self._marks: deque[_Mark] = deque()
        self._before: Observation | None = None
        self._warned_at = clock()
        self.value: Any = None
        """The bound, or None before the first."""

    @property
    def waiting(self) -> int:
        """The count of marks that wait for transactions to end."""
        return len(self._marks)

    def advance(self, read_mark: Callable[[], Any], observe: Callable[[], Observation | None]) -> Any:
        """Read a mark, observe, and return the bound.

        `read_mark` returns None if there is nothing new. `observe` returns None if it could not see which
        transactions are open: then the bound stays, and the mark is read again later.
        """
        mark = read_mark() if len(self._marks) < MARKS_MAX else None
        if mark is None and not self._marks:
            return self.value
        observation = observe()
        if observation is None:
            return self.value
        for waiting in self._marks:
            waiting.waiting = observation.remaining(waiting.waiting, self._before or observation)
        if mark is not None:
            self._marks.append(_Mark(mark, observation.open, self._clock()))
        self._before = observation
        # A later mark waits for all that an earlier one waits for, except for what has ended since.
        while self._marks and not self._marks[0].waiting:
            self.value = self._marks.popleft().value
            self._warned_at = self._clock()
        self._warn()
        return self.value

    def _warn(self) -> None:
        if not self._marks or self._clock() - max(self._warned_at, self._marks[0].since) < _WARNING_SECONDS:
            return
        self._warned_at = self._clock()
        _log.warning(
            "%s: its newest rows wait for transactions that have been open for %d s: %s",
            self._name,
            self._clock() - self._marks[0].since,
            ", ".join(sorted(map(str, self._marks[0].waiting))[:10]),
        )
