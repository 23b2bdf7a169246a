"""The join of two streams: each side stores its records for a while, and looks up those of the other side.

A join has four nodes: each side has one that stores its records, and one below that reads the other side's
store. A record is looked up before it is stored, so each pair is joined once, by the record that arrives
later. Results have the higher timestamp of both.

Left and outer joins have another store, shared by both sides, of records without a match so far. Such a
record is forwarded, with its own timestamp, once no match can arrive any more (KIP-633). Null values are
dropped, and null keys too, unless their side is an outer one (KIP-962).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streams.processors.joins.joiner import Joiner, with_key
from streams.processors.record import Headers, Process
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.wiring import Operator, Wiring
from streams.state import JoinWindowStore, OuterJoinStore


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """A side of a join of two streams."""

    is_left: bool
    windows: JoinWindows
    joiner: Callable[..., Any]
    """Takes left and right value, or key, left and right value if `with_key`."""
    with_key: bool
    other_store: str
    """The name of the store of the other side's records."""
    outer: bool = False
    """True: records of this side without a match are forwarded as well."""
    unmatched_store: str | None = None
    """The name of the store of both sides' records without a match so far; None for an inner join."""

    @property
    def span_ms(self) -> tuple[int, int]:
        """How much earlier, and later, a match on the other side may be, ms."""
        before, after = self.windows.before_ms, self.windows.after_ms
        return (before, after) if self.is_left else (after, before)

    @property
    def stores(self) -> tuple[str, ...]:
        """The names of the stores that the side's lookups use."""
        return (
            (self.other_store,) if self.unmatched_store is None else (self.other_store, self.unmatched_store)
        )

    def joined(self) -> Joiner:
        """Return the joiner as a function of key, this side's value and the other side's."""
        joiner = self.joiner
        match self.with_key, self.is_left:
            case True, True:
                return joiner
            case True, False:
                return lambda key, value, other: joiner(key, other, value)
            case False, True:
                return lambda key, value, other: joiner(value, other)
            case _:
                return lambda key, value, other: joiner(other, value)


def keep_records(store_name: str) -> Operator:
    """Return the operator that forwards each record, then stores it for the other side."""

    def build(wiring: Wiring) -> Process:
        store = window_store(wiring, store_name)
        forward, add, serialize = wiring.forward, store.add, store.spec.key_serde.serialize

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            forward(key, value, timestamp, headers)
            if key is not None:
                add(serialize(key), value, timestamp)

        return process

    return build


def join_inner(side: JoinSide) -> Operator:
    """Return the operator that joins each record with those of the other side within the window."""
    (before, after), joined = side.span_ms, side.joined()

    def build(wiring: Wiring) -> Process:
        store = window_store(wiring, side.other_store)
        forward, dropped = wiring.forward, wiring.metrics.dropped
        find, serialize = store.find, store.spec.key_serde.serialize

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            time_to = timestamp + after
            for time, other in find(serialize(key), timestamp - before, time_to if time_to > 0 else 0):
                result = joined(key, value, other)
                forward(key, result, timestamp if timestamp > time else time, headers)

        return process

    return build


def join_outer(side: JoinSide) -> Operator:
    """Return the operator of a side of a left or outer join.

    If this side is outer, its records without a match are joined with None, at once or when their window is
    closed.
    """
    (before, after), joined, outer, is_left = side.span_ms, side.joined(), side.outer, side.is_left

    def build(wiring: Wiring) -> Process:
        store, unmatched = window_store(wiring, side.other_store), _unmatched_store(wiring, side)
        forward, dropped, find = wiring.forward, wiring.metrics.dropped, store.find
        serialize, keep, forget = store.spec.key_serde.serialize, unmatched.keep, unmatched.forget
        send_closed = _closing(wiring, side, unmatched, store.spec.key_serde.deserialize)
        unmatched.begin(store.stream_time)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if timestamp > unmatched.time:
                unmatched.time = timestamp
            if key is None or value is None:
                if value is not None and outer:
                    forward(key, joined(key, value, None), timestamp, headers)
                else:
                    dropped()
                return
            if timestamp == unmatched.time:
                send_closed(headers)
            raw, time_to = serialize(key), max(timestamp + after, 0)
            matches = find(raw, max(timestamp - before, 0), time_to)
            for time, other in matches:
                forget(raw, time, is_left=not is_left, now=timestamp)
                result = joined(key, value, other)
                forward(key, result, timestamp if timestamp > time else time, headers)
            if matches or not outer:
                return
            if time_to < unmatched.time:
                forward(key, joined(key, value, None), timestamp, headers)
            else:
                keep(raw, value, timestamp, is_left=is_left)

        return process

    return build


def _closing(
    wiring: Wiring, side: JoinSide, unmatched: OuterJoinStore, deserialize: Callable[[bytes], Any]
) -> Callable[[Headers], None]:
    """Return a function that forwards the unmatched records whose windows are closed.

    The function's argument are the headers that the forwarded records get. A call within
    ``task.outer_join_emit_interval_ms`` (wall clock) of the last one that forwarded does nothing.
    """
    windows, task, forward = side.windows, wiring.task, wiring.forward
    before, after, grace = windows.before_ms, windows.after_ms, windows.grace_ms
    joiner = with_key(side.joiner, takes_key=side.with_key)
    span, is_due = side.span_ms[1] + grace, unmatched.is_worth_a_look

    def send_closed(headers: Headers) -> None:
        if not is_due(span, task.wall_clock, task.outer_join_emit_interval_ms):
            return
        for timestamp, is_left, raw, values in unmatched.take_closed(before, after, grace):
            key = deserialize(raw)
            for value in values:
                result = joiner(key, value, None) if is_left else joiner(key, None, value)
                forward(key, result, timestamp, headers)

    return send_closed


def window_store(wiring: Wiring, name: str) -> JoinWindowStore[Any, Any]:
    """Return a join's store by name."""
    store = wiring.store(name)
    assert isinstance(store, JoinWindowStore), f"{name} is not a join's window store"
    return store


def _unmatched_store(wiring: Wiring, side: JoinSide) -> OuterJoinStore:
    assert side.unmatched_store is not None, "an outer join has a store of unmatched records"
    store = wiring.store(side.unmatched_store)
    assert isinstance(store, OuterJoinStore), f"{side.unmatched_store} is not an outer join's store"
    return store
