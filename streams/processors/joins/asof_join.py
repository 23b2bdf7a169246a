"""The as-of join of two streams (`AsOf`): a record of the left stream goes on once, with one record or none.

It goes on once stream time, that of both streams together, is so far that no better match can come, with its
own timestamp and headers; until then it waits in a store. What comes of the right stream is kept for a time.
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
"""Of the right stream's store: the stream time of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOfJoin:
    """What both sides know. ``right_store``, ``waiting_store``: None where nothing waits.

    `outer`: a record that meets none is joined with None. `idle_ms`: how long the task's inputs bring
    nothing, by wall clock, before nothing waits any longer; None for ever.
    """

    as_of: AsOf
    joiner: Joiner
    value_serde: Serde[Any]
    right_store: str
    waiting_store: str | None
    outer: bool
    idle_ms: int | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that both sides use."""
        return (self.right_store,) if self.waiting_store is None else (self.right_store, self.waiting_store)


class _Side:
    """A side of the join in one task; both have the same stores and the same time."""

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
        """What a record of this key and time meets, as far as is known."""
        as_of = self._join.as_of
        return as_of.choose(timestamp, self.right.find(key, *as_of.span(timestamp)))

    def advance(self, timestamp: int) -> int:
        """Stream time with this record; what is due goes on before the record is looked at."""
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
        """Have a record wait."""
        assert self.waiting is not None, "records wait only where there is a store for them"
        data, task = self._join.value_serde.serialize(value), self._task
        place = task.offset, task.topic, task.partition
        held = Buffered(timestamp, None, None, data, timestamp, *place, headers)
        self.waiting.expect(self.waiting.keep(key, timestamp, held), due)

    def answer(self, store: WaitingStore, waiting: Waiting) -> None:
        """Let a record that waited go on."""
        held = store.take(waiting, self.time.stream_time)
        value = self._join.value_serde.deserialize(held.new or b"")
        match = self.match(waiting.key, waiting.timestamp)
        self.send(self._decode(waiting.key), value, waiting.timestamp, held.headers, match)

    def send(self, key: Any, value: Any, timestamp: int, headers: Headers, match: Match | None) -> None:
        """Let a record go on with what it meets."""
        if match is not None:
            self.forward(key, self._join.joiner(key, value, match[1]), timestamp, headers)
        elif self._join.outer:
            self.forward(key, self._join.joiner(key, value, None), timestamp, headers)

    def look_again(self, key: bytes, timestamp: int) -> None:
        """A right record came: who waits for one like it may be due at once, or sooner."""
        if (store := self.waiting) is None:
            return
        as_of = self._join.as_of
        for waiting in store.of(key):
            if as_of.meets(waiting.timestamp, timestamp):
                store.expect(waiting, as_of.due(waiting.timestamp, timestamp))
        for waiting in store.take_due(self.time.stream_time):
            self.answer(store, waiting)

    def end_waiting(self) -> None:
        """Let all that waits go on, as if stream time were so far."""
        if (store := self.waiting) is None:
            return
        self._begin(store)
        if store.last >= 0:
            self.advance(store.last + self._join.as_of.tolerance_ms + self._join.as_of.grace_ms + 1)


def join_left(join: AsOfJoin) -> Operator:
    """The side whose records go on."""

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
    """The side whose records are met."""

    def build(wiring: Wiring) -> Process:
        side = _Side(wiring, join)
        add, serialize, dropped = side.right.add, side.right.spec.key_serde.serialize, wiring.metrics.dropped

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            side.advance(timestamp)  # first: what is due cannot meet this one
            if key is None or value is None:
                dropped()
                return
            raw = serialize(key)
            add(raw, value, timestamp)
            side.look_again(raw, timestamp)

        return process

    return build
