"""Answers that wait: for records to be appended, or for a deadline, whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from logd.broker.partition import Partition

T = TypeVar("T")


class Delayed(Generic[T]):
    """One waiting request.

    ``attempt(final)`` returns the answer, or None when there is still a reason to wait; when ``final`` is
    true the time is up and it has to answer. Whoever made this calls ``start`` once, and ``cancel`` if nobody
    wants the answer any more.
    """

    __slots__ = ("_attempt", "_done", "_loop", "_partitions", "_timer", "_wait_ms")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: Collection[Partition],
        wait_ms: int,
        attempt: Callable[[bool], T | None],
    ) -> None:
        self._loop = loop
        self._partitions = partitions
        self._wait_ms = wait_ms
        self._attempt = attempt
        self._done: Callable[[T], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, done: Callable[[T], None]) -> None:
        """Wait from now on; ``done`` is called once, with the answer."""
        self._done = done
        for partition in self._partitions:
            partition.waiters.add(self)
        self._timer = self._loop.call_later(self._wait_ms / 1000, self._expire)

    def on_append(self) -> None:
        """A partition has news: answer if that is enough."""
        answer = self._attempt(False)
        if answer is not None:
            self._finish(answer)

    def cancel(self) -> None:
        """Stop waiting without an answer."""
        self._done = None
        if self._timer is not None:
            self._timer.cancel()
        for partition in self._partitions:
            partition.waiters.discard(self)

    def _expire(self) -> None:
        answer = self._attempt(True)
        assert answer is not None, "a final attempt has to answer"
        self._finish(answer)

    def _finish(self, answer: T) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done(answer)
