"""Answers that wait: for records to be appended or for a deadline, whichever comes first, and for pages that
are not in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from logd.broker.fetching.cold_reads import ColdRead, ColdReads, Job
    from logd.broker.partition.partition import FollowerWaiter
    from logd.broker.work.wakeups import Wakeups

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class NeedsColdRead:
    """An attempt that needs pages from the disk: run ``jobs``, then attempt it again."""

    __slots__ = ("jobs",)

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs


class Attempt(Protocol[T_co]):
    """Makes a delayed answer; called again after each notification until it returns one."""

    def watch(self, waiter: FollowerWaiter) -> None:
        """Have ``waiter`` notified once of the next change of what is waited for; called after each None."""

    def unwatch(self, waiter: FollowerWaiter) -> None:
        """Do not notify it any more."""

    def __call__(self, final: bool) -> T_co | NeedsColdRead | None:
        """Return the response, None while there is a reason to wait, or the cold read that has to come first.

        If ``final`` is true, the time is up: return a response or a cold read, never None.
        """

    def warmed(self, error: OSError | None) -> None:
        """Note that the missing pages were read in, or could not be (`error`); the next call uses them."""


class Delayed(Generic[T]):
    """A waiting request.

    ``outcome`` is the result of the first attempt: None or NeedsColdRead. Its creator calls ``start`` once,
    and ``cancel`` if the response is not needed any more.
    """

    __slots__ = (
        "_attempt",
        "_done",
        "_failed",
        "_final",
        "_loop",
        "_outcome",
        "_timer",
        "_wait_ms",
        "_wakeups",
        "_warmer",
        "_warming",
        "_watching",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        cold_reads: ColdReads,
        wakeups: Wakeups,
        wait_ms: int,
        attempt: Attempt[T],
        outcome: NeedsColdRead | None,
    ) -> None:
        self._loop = loop
        self._warmer = cold_reads
        self._wakeups = wakeups
        self._wait_ms = wait_ms
        self._attempt = attempt
        self._outcome = outcome
        self._done: Callable[[T], None] | None = None
        self._failed: Callable[[Exception], None]
        self._timer: asyncio.TimerHandle | None = None
        self._warming: ColdRead | None = None
        self._final = wait_ms <= 0
        self._watching = False

    def start(self, done: Callable[[T], None], failed: Callable[[Exception], None]) -> None:
        """Wait from now on; one of the two is called once: with the answer, or with the exception that an
        attempt ended in.
        """
        self._done, self._failed = done, failed
        self._wakeups.waiting += 1
        if not self._final:
            self._timer = self._loop.call_later(self._wait_ms / 1000, self._expire)
        self._take(self._outcome)

    def on_append(self) -> None:
        """Attempt the response again in the loop's next turn: something that the request waits for has
        changed.
        """
        self._wakeups.add(self)

    def on_commit(self) -> None:
        """See `FollowerWaiter`: it is said when there is something else to say, or the time is up."""

    def wake(self) -> None:
        """Answer if what there is by now is enough."""
        if self._warming is not None or self._done is None:
            return
        try:
            outcome = self._attempt(self._final)
        except Exception as error:
            self.cancel()
            self._failed(error)
        else:
            self._take(outcome)

    def cancel(self) -> None:
        """Stop waiting without an answer."""
        if self._done is not None:
            self._wakeups.waiting -= 1
        self._done = None
        if self._timer is not None:
            self._timer.cancel()
        if self._warming is not None:
            self._warming.cancel()
            self._warming = None
        if self._watching:
            self._attempt.unwatch(self)

    def _expire(self) -> None:
        self._final = True
        self.wake()

    def _take(self, outcome: T | NeedsColdRead | None) -> None:
        if outcome is None:
            assert not self._final, "a final attempt has to answer"
            self._watching = True
            self._attempt.watch(self)
        elif isinstance(outcome, NeedsColdRead):
            self._warming = self._warmer.start(outcome.jobs, self._warmed)
        else:
            done = self._done
            self.cancel()
            if done is not None:
                done(outcome)

    def _warmed(self, error: OSError | None) -> None:
        self._warming = None
        self._attempt.warmed(error)
        self.wake()
