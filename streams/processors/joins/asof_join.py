"""The as-of join of two streams (`AsOf`): each left record is joined once, with one right record or none.

A left record waits in a store until no better match can arrive, by the stream time of both streams. Then its
result is forwarded, with its timestamp and headers. Right records are kept for a while as possible matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.processors.joins.asof import AsOf, Match, time_of
from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Serde
from streams.serdes.buffered import Buffered
from streams.state import JoinWindowStore
from streams.state.waiting import Waiting, WaitingStore

CLOCK = "join"
"""The name of the clock in the right stream's store that has the stream time of both streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOfJoin:
    """The settings and stores of an as-of join, shared by both sides."""

    as_of: AsOf
    joiner: Joiner
    value_serde: Serde[Any]
    """The serde of left values."""
    right_store: str
    """The name of the store of right records."""
    waiting_store: str | None
    """The name of the store of waiting left records, None if records never wait."""
    outer: bool
    """True: a left record without a match is joined with None."""
    idle_ms: int | None = None
    """The idle time of the task's inputs (wall clock, ms) after which records stop waiting; None: never."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that both sides use."""
        return (self.right_store,) if self.waiting_store is None else (self.right_store, self.waiting_store)


class _Side:
    """A side of the join in a task; both sides have the same stores and the same stream time."""

    def __init__(self, wiring: Wiring, join: AsOfJoin) -> None:
        right = wiring.store(join.right_store)
        assert isinstance(right, JoinWindowStore), f"{join.right_store} is not a join's window store"
        self.right: JoinWindowStore[Any, Any] = right
        self.time = right.clock(CLOCK)
        self.waiting: WaitingStore | None = None
        if join.waiting_store is not None:
            waiting = wiring.store(join.waiting_store)
            assert isinstance(waiting, WaitingStore), f"{join.waiting_store} is not a store of what waits"
            self.waiting = waiting
        self.forward = wiring.forward
        self._join, self._task = join, wiring.task
        self._decode = right.spec.key_serde.deserialize

    def match(self, key: bytes, timestamp: int) -> Match | None:
        """Return the match so far of a left record of this key and time (ms), None if there is none."""
        as_of = self._join.as_of
        return as_of.choose(timestamp, self.right.find(key, *as_of.span(timestamp)))

    def advance(self, timestamp: int) -> int:
        """Advance stream time to a record's timestamp, join the records that are due, return stream time."""
        time = self.time
        if timestamp > time.stream_time:
            time.stream_time = timestamp
        if self.waiting is not None:
            self._begin(self.waiting)
            for waiting in self.waiting.take_due(time.stream_time):
                self.answer(self.waiting, waiting)
        return time.stream_time

    def _begin(self, store: WaitingStore) -> None:
        for waiting in store.begin():
            match = self.match(waiting.key, waiting.timestamp)
            store.expect(waiting, self._join.as_of.due(waiting.timestamp, time_of(match)))

    def keep(self, key: bytes, value: Any, timestamp: int, headers: Headers, due: int) -> None:
        """Put a left record in the store of waiting records until the stream time ``due`` (ms)."""
        assert self.waiting is not None, "records wait only if there is a store for them"
        data, task = self._join.value_serde.serialize(value), self._task
        place = task.offset, task.topic, task.partition
        record = Buffered(timestamp, None, None, data, timestamp, *place, headers)
        self.waiting.expect(self.waiting.keep(key, timestamp, record), due)

    def answer(self, store: WaitingStore, waiting: Waiting) -> None:
        """Remove a record from the store of waiting records, and join it."""
        record = store.take(waiting, self.time.stream_time)
        value = self._join.value_serde.deserialize(record.new or b"")
        match = self.match(waiting.key, waiting.timestamp)
        self.send(self._decode(waiting.key), value, waiting.timestamp, record.headers, match)

    def send(self, key: Any, value: Any, timestamp: int, headers: Headers, match: Match | None) -> None:
        """Forward the result of a left record and its match, if the join has one."""
        if match is not None:
            self.forward(key, self._join.joiner(key, value, match[1]), timestamp, headers)
        elif self._join.outer:
            self.forward(key, self._join.joiner(key, value, None), timestamp, headers)

    def look_again(self, key: bytes, timestamp: int) -> None:
        """Set the due times of records that match a new right record, and join those that are due now."""
        if (store := self.waiting) is None:
            return
        as_of = self._join.as_of
        for waiting in store.of(key):
            if as_of.meets(waiting.timestamp, timestamp):
                store.expect(waiting, as_of.due(waiting.timestamp, timestamp))
        for waiting in store.take_due(self.time.stream_time):
            self.answer(store, waiting)

    def end_waiting(self) -> None:
        """Join all waiting records, as if stream time had reached their due times."""
        if (store := self.waiting) is None:
            return
        self._begin(store)
        if store.last >= 0:
            self.advance(store.last + self._join.as_of.tolerance_ms + self._join.as_of.grace_ms + 1)


def join_left(join: AsOfJoin) -> Operator:
    """Return the operator of the left side, whose records are joined with a match."""

    def build(wiring: Wiring) -> Process:
        side, as_of, outer = _Side(wiring, join), join.as_of, join.outer
        serialize, dropped = side.right.spec.key_serde.serialize, wiring.metrics.dropped
        if join.idle_ms is not None:
            wiring.task.on_idle.append((join.idle_ms, side.end_waiting))

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            now = side.advance(timestamp)
            if value is None or (key is None and not outer):
                dropped()
                return
            if key is None:
                side.send(key, value, timestamp, headers, None)
                return
            raw = serialize(key)
            match = side.match(raw, timestamp)
            due = as_of.due(timestamp, time_of(match))
            if due <= now:
                side.send(key, value, timestamp, headers, match)
            else:
                side.keep(raw, value, timestamp, headers, due)

        return process

    return build


def join_right(join: AsOfJoin) -> Operator:
    """Return the operator of the right side, whose records are the matches."""

    def build(wiring: Wiring) -> Process:
        side = _Side(wiring, join)
        add, serialize, dropped = side.right.add, side.right.spec.key_serde.serialize, wiring.metrics.dropped

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            side.advance(timestamp)  # first: this record is no match for records that are due
            if key is None or value is None:
                dropped()
                return
            raw = serialize(key)
            add(raw, value, timestamp)
            side.look_again(raw, timestamp)

        return process

    return build
