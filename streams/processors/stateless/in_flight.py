"""Records in flight: those of an asynchronous node whose coroutines are not over, or whose turn has not come.

It is all in the task's thread but for the coroutines, which run in an event loop (`Coroutines`). A result is
forwarded at the place of its record: topic, partition, offset, stream time, and the bytes handlers are given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from streams.processors.coroutines import Call, Coroutines
from streams.processors.record import Headers, Process, Record
from streams.processors.wiring import Place, Wiring

Ordered = Literal["key", "partition", "none"]
"""What comes out in the order of the input.

    key        the records of a key, one call after the other; those without a key are in no order
    partition  all records; their calls run at the same time
    none       nothing
"""

Work = Callable[[Any, Any], Coroutine[Any, Any, Any]]
Deliver = Callable[[Process, Record[Any, Any], Any], None]
"""Forwards what became of a record: to where, the record, the result."""


@dataclass(slots=True, eq=False)
class _Flight(Call):
    """A record's call."""

    record: Any = None
    place: Any = None
    lane: Any = None
    """What the record's key is for the order; None if it need not wait for another."""


class InFlight:
    """At most ``limit`` records of one node of one task."""

    def __init__(self, wiring: Wiring, work: Work, deliver: Deliver, *, limit: int, ordered: Ordered) -> None:
        self._node = wiring.node
        self._task = wiring.task
        self._forward = wiring.forward
        self._dropped = wiring.metrics.dropped
        self._coroutines = _there(wiring)
        self._work = work
        self._deliver = deliver
        self._limit = limit
        self._ordered = ordered
        self._lanes: dict[Any, deque[_Flight]] = {}
        """Of each key with a call that runs, the records behind it."""
        self._begun: dict[_Flight, None] = {}
        """Records whose calls were started, in that order."""
        self._over: deque[Call] = deque()
        self.held = 0

    @property
    def room(self) -> int:
        """How many more there may be."""
        return self._limit - self.held

    def take(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Start a call; blocks while there is no room, where one input record makes many."""
        while self.held >= self._limit:
            self._await_one()
        record = Record(key, value, timestamp, headers)
        flight = _Flight(self._node, lambda: self._work(key, value), record=record, place=self._task.place)
        self.held += 1
        if self._ordered == "key" and key is not None:
            flight.lane = _hashable(key)
            behind = self._lanes.get(flight.lane)
            if behind is not None:
                behind.append(flight)
                return
            self._lanes[flight.lane] = deque()
        self._start(flight)

    def _start(self, flight: _Flight) -> None:
        self._begun[flight] = None
        self._coroutines.start(flight, self._over)
        if self._over:
            self.collect()

    def collect(self) -> None:
        """Forward what is over and whose turn it is."""
        while self._over:
            flight: Any = self._over.popleft()
            if self._ordered == "partition":
                self._land_in_order()
            else:
                self._land(flight)

    end_turn = collect

    def drain(self) -> None:
        """Forward all of them; blocks until they are over."""
        while self.held:
            self._await_one()

    def give_up(self) -> None:
        """Cancel all of them: nothing of theirs is forwarded."""
        self._coroutines.give_up(self._begun)
        self._begun, self._lanes, self._over, self.held = {}, {}, deque(), 0

    def _await_one(self) -> None:
        self._coroutines.wait(self._over)
        self.collect()

    def _land_in_order(self) -> None:
        while self._begun and (first := next(iter(self._begun))).is_over:
            self._land(first)

    def _land(self, flight: _Flight) -> None:
        """Go back to the record's place, and on with it there. An error leaves the task at that place."""
        task = self._task
        before: Place = task.place
        task.place = flight.place
        del self._begun[flight]
        self.held -= 1
        if flight.error is not None:
            task.fail(self._node, flight.error, flight.record)
            self._dropped()
        if flight.lane is not None:
            self._start_next(flight.lane)
        if flight.error is None:
            task.timestamp = flight.record.timestamp
            self._deliver(self._forward, flight.record, flight.result)
        task.place = before

    def _start_next(self, lane: Any) -> None:
        behind = self._lanes[lane]
        if behind:
            following = behind.popleft()
            self._begun[following] = None
            self._coroutines.start(following, self._over)
        else:
            del self._lanes[lane]


def _there(wiring: Wiring) -> Coroutines:
    assert wiring.task.coroutines is not None, f"{wiring.node} has no event loop"
    return wiring.task.coroutines


def _hashable(key: Any) -> Any:
    """The key, or a text for one that cannot be hashed, such as a dict or a list."""
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key
