"""A queue of questions for one other broker, sent in batches.

Questions of one turn of the loop are sent in one request. So are questions that wait while as many requests
as allowed are under way. When and where to try again is left to the callers of `add`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from logd.broker.work.periodic import PeriodicTasks

IN_FLIGHT_MAX = 5
"""Requests to one broker at a time: one that waits for its replicas does not hold up all others."""


class Item(Protocol):
    """Something to be asked."""

    @property
    def is_wanted(self) -> bool:
        """True if somebody still waits for it."""

    @property
    def subject(self) -> tuple[Hashable, Hashable]:
        """The key and the question of this entry of a request.

        The response tells its results apart by key only. So one request asks one question about a key.
        """


T = TypeVar("T", bound=Item)


class Bounds(NamedTuple):
    """How many items wait at most, and go with one request."""

    queued: int
    per_request: int


class PeerQueue(Generic[T]):
    """The queue for one broker. `send` sends the request, and makes sure that every item of the batch is
    answered.
    """

    def __init__(
        self, send: Callable[[list[T]], Coroutine[Any, Any, None]], rounds: PeriodicTasks, bounds: Bounds
    ) -> None:
        self._send = send
        self._rounds = rounds
        self._bounds = bounds
        self._waiting: deque[T] = deque()
        self._under_way: list[list[T]] = []
        self._is_due = False

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._under_way)

    def unanswered(self) -> list[T]:
        """Return all items still waited for, under way or not."""
        items = itertools.chain(*self._under_way, self._waiting)
        return [item for item in items if item.is_wanted]

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self) -> bool:
        """Return True if `add` takes one more item; items not waited for any more are dropped first."""
        if len(self._waiting) >= self._bounds.queued:
            self._waiting = deque(item for item in self._waiting if item.is_wanted)
        return len(self._waiting) < self._bounds.queued

    def add(self, item: T) -> None:
        """Ask it with the next request; only where it `has_room`."""
        self._waiting.append(item)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._begin)  # with whatever else this turn brings

    def _begin(self) -> None:
        self._is_due = False
        while self.in_flight < IN_FLIGHT_MAX and (batch := self._next_batch()):
            self._under_way.append(batch)
            self._rounds.spawn(self._ask(batch))

    def _next_batch(self) -> list[T]:
        batch: list[T] = []
        subjects: dict[Hashable, Hashable] = {}
        left: list[T] = []
        while self._waiting and len(batch) < self._bounds.per_request:
            item = self._waiting.popleft()
            if not item.is_wanted:
                continue
            key, subject = item.subject
            fits = subjects.setdefault(key, subject) == subject
            (batch if fits else left).append(item)
        self._waiting.extendleft(reversed(left))
        return batch

    async def _ask(self, batch: list[T]) -> None:
        try:
            await self._send(batch)
        finally:
            self._under_way.remove(batch)
        self._begin()  # not behind a cancellation: everything ends then
