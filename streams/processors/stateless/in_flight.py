"""Records in flight: those of an asynchronous node whose coroutines are running, or whose turn has not come.

Only the coroutines run in an event loop (`Coroutines`), everything else in the task's thread. A result is
forwarded at the place of its record: topic, partition, offset, stream time, and the bytes for error handlers.
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
"""The records whose results are forwarded in the order of the input.

    key        the records of a key, one call after the other; those without a key are in no order
    partition  all records; their calls run at the same time
    none       no records
"""

Work = Callable[[Any, Any], Coroutine[Any, Any, Any]]
Deliver = Callable[[Process, Record[Any, Any], Any], None]
"""Forwards a record's result: takes the function to forward with, the record, and the result."""


@dataclass(slots=True, eq=False)
class _Flight(Call):
    """A record's call."""

    record: Any = None
    place: Any = None
    lane: Any = None
    """The record's key as its lane in `InFlight`; None if it need not wait for another record."""


class InFlight:
    """The records in flight of a node of a task, ``limit`` at most."""

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
        """The waiting records of each key whose call is running."""
        self._started: dict[_Flight, None] = {}
        """The records whose calls were started, in the order of the starts."""
        self._over: deque[Call] = deque()
        self.record_count = 0

    @property
    def room(self) -> int:
        """The number of records that can be added."""
        return self._limit - self.record_count

    def take(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record, and start its call, or queue it after its key's running call.

        Blocks while there is no room; one input record may have become many.
        """
        while self.record_count >= self._limit:
            self._await_one()
        record = Record(key, value, timestamp, headers)
        flight = _Flight(self._node, lambda: self._work(key, value), record=record, place=self._task.place)
        self.record_count += 1
        if self._ordered == "key" and key is not None:
            flight.lane = _hashable(key)
            waiting = self._lanes.get(flight.lane)
            if waiting is not None:
                waiting.append(flight)
                return
            self._lanes[flight.lane] = deque()
        self._start(flight)

    def _start(self, flight: _Flight) -> None:
        self._started[flight] = None
        self._coroutines.start(flight, self._over)
        if self._over:
            self.collect()

    def collect(self) -> None:
        """Forward the results of finished calls whose turn has come."""
        while self._over:
            flight: Any = self._over.popleft()
            if self._ordered == "partition":
                self._land_in_order()
            else:
                self._land(flight)

    end_turn = collect

    def drain(self) -> None:
        """Forward the results of all records; blocks until their calls are over."""
        while self.record_count:
            self._await_one()

    def give_up(self) -> None:
        """Cancel all calls; their results are not forwarded."""
        self._coroutines.give_up(self._started)
        self._started, self._lanes, self._over, self.record_count = {}, {}, deque(), 0

    def _await_one(self) -> None:
        self._coroutines.wait(self._over)
        self.collect()

    def _land_in_order(self) -> None:
        while self._started and (first := next(iter(self._started))).is_over:
            self._land(first)

    def _land(self, flight: _Flight) -> None:
        """Forward a record's result at the record's place. An error leaves the task at that place."""
        task = self._task
        before: Place = task.place
        task.place = flight.place
        del self._started[flight]
        self.record_count -= 1
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
        waiting = self._lanes[lane]
        if waiting:
            following = waiting.popleft()
            self._started[following] = None
            self._coroutines.start(following, self._over)
        else:
            del self._lanes[lane]


def _there(wiring: Wiring) -> Coroutines:
    assert wiring.task.coroutines is not None, f"{wiring.node} has no event loop"
    return wiring.task.coroutines


def _hashable(key: Any) -> Any:
    """Return the key, or a text if it cannot be hashed, such as a dict or a list."""
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key
