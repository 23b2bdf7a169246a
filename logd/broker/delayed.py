"""Answers that wait: for records to be appended or for a deadline, whichever comes first, and for pages that
are not in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Generic, Protocol, TypeVar

from logd.broker.partition import Partition
from logd.broker.warming import Job, Warmer, Warming

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Cold:
    """An attempt that needs pages from the disk: run ``jobs``, then attempt it again."""

    __slots__ = ("jobs",)

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs


class Attempt(Protocol[T_co]):
    """What a delayed answer is made by; called again whenever there is news, until it answers."""

    @property
    def partitions(self) -> Collection[Partition]:
        """Those to wait for, the same ones from the first call on that gave None."""

    def __call__(self, final: bool) -> T_co | Cold | None:
        """The answer, None when there is still a reason to wait, or what has to be read in first.

        When ``final`` is true the time is up and it has to answer.
        """

    def warmed(self, error: OSError | None) -> None:
        """What was cold has been read in, or could not be; the call after this is to make use of it."""


class Delayed(Generic[T]):
    """One waiting request.

    ``outcome`` is what the first attempt gave: None or Cold. Whoever made this calls ``start`` once, and
    ``cancel`` if nobody wants the answer any more.
    """

    __slots__ = (
        "_attempt",
        "_done",
        "_final",
        "_loop",
        "_outcome",
        "_timer",
        "_wait_ms",
        "_warmer",
        "_warming",
        "_watching",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        warmer: Warmer,
        wait_ms: int,
        attempt: Attempt[T],
        outcome: Cold | None,
    ) -> None:
        self._loop = loop
        self._warmer = warmer
        self._wait_ms = wait_ms
        self._attempt = attempt
        self._outcome = outcome
        self._done: Callable[[T], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._warming: Warming | None = None
        self._final = wait_ms <= 0
        self._watching = False

    def start(self, done: Callable[[T], None]) -> None:
        """Wait from now on; ``done`` is called once, with the answer."""
        self._done = done
        if not self._final:
            self._timer = self._loop.call_later(self._wait_ms / 1000, self._expire)
        self._take(self._outcome)

    def on_append(self) -> None:
        """A partition has news: answer if that is enough."""
        if self._warming is None and self._done is not None:
            self._take(self._attempt(self._final))

    def cancel(self) -> None:
        """Stop waiting without an answer."""
        self._done = None
        if self._timer is not None:
            self._timer.cancel()
        if self._warming is not None:
            self._warming.cancel()
            self._warming = None
        if self._watching:
            for partition in self._attempt.partitions:
                partition.waiters.discard(self)

    def _expire(self) -> None:
        self._final = True
        self.on_append()

    def _take(self, outcome: T | Cold | None) -> None:
        if outcome is None:
            assert not self._final, "a final attempt has to answer"
            if not self._watching:
                self._watching = True
                for partition in self._attempt.partitions:
                    partition.waiters.add(self)
        elif isinstance(outcome, Cold):
            self._warming = self._warmer.start(outcome.jobs, self._warmed)
        else:
            done = self._done
            self.cancel()
            if done is not None:
                done(outcome)

    def _warmed(self, error: OSError | None) -> None:
        self._warming = None
        self._attempt.warmed(error)
        self.on_append()
