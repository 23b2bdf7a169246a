"""Aggregation by key and session (Kafka's KStreamSessionWindowAggregate).

A record and its key's sessions that are no further from it than the gap make one session. The new session
replaces the old ones: they become tombstones, downstream too, and the new one follows, with its end as
timestamp. Records without a key are dropped; a record without a value is processed like others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streams.processors.aggregates.aggregate import Aggregation, cannot_change
from streams.processors.aggregates.expired import hide_expired_old_values
from streams.processors.record import Headers, Process
from streams.processors.tables.table import OldValues, forward_changes
from streams.processors.windowing.emit import emit_closed, spans_of_sessions
from streams.processors.windowing.idle import let_close
from streams.processors.windowing.windows import EmitStrategy, SessionWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed
from streams.state import SessionStore
from streams.state.session_key import session_key

Bounds: TypeAlias = tuple[int, int]
"""A stored session's end and start, ms."""


def aggregate_sessions(
    store_name: str,
    windows: SessionWindows,
    aggregation: Aggregation,
    emit: EmitStrategy,
    old_values: OldValues,
    clock: str | None = None,
    idle_ms: int | None = None,
) -> Operator:
    """Return the operator of an aggregation with one result per key and session.

    ``idle_ms``: see `let_close`.
    """
    gap, grace = windows.inactivity_gap_ms, windows.grace_ms
    emits = emit == "on_window_close"

    def build(wiring: Wiring) -> Process:
        store = wiring.session_store(store_name)
        time = store.clock(clock or "")
        find, serialize = store.find, store.spec.key_serde.serialize
        dropped, late = wiring.metrics.dropped, wiring.metrics.late
        merged = _merging(store, aggregation)
        replace = _replacing(wiring, store, aggregation, old_values, emits=emits)
        spans = spans_of_sessions(windows)
        on_close = emit_closed(wiring, store, spans)
        let_close(wiring, store, windows, spans if emits else None, clock or "", idle_ms)
        if not emits:
            forward_changes(wiring, store, old_values)
            hide_expired_old_values(store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                dropped()
                return
            if timestamp > time.stream_time:
                time.stream_time = timestamp
            close, raw = time.stream_time - grace - gap, serialize(key)
            sessions = find(raw, timestamp - gap, timestamp + gap)
            start = end = timestamp
            for old_end, old_start in sessions:
                if old_start < start:
                    start = old_start
                if old_end > end:
                    end = old_end
            if end < close:
                late()
            else:
                so_far = merged(key, raw, sessions)
                replace(key, raw, value, so_far, sessions, start, end, timestamp, headers)
            if emits:
                on_close(close, headers)

        return process

    return build


def _merging(
    store: SessionStore[Any, Any], aggregation: Aggregation
) -> Callable[[Any, bytes, list[Bounds]], Any]:
    """Return a function that merges the results of the sessions which a record joins.

    The record itself is added afterwards. For no sessions the function returns the initial value.
    """
    lookup, initial, merge = store.borrow, aggregation.initial, aggregation.merge
    assert merge is not None, "sessions merge"

    def merged(key: Any, raw: bytes, sessions: list[Bounds]) -> Any:
        so_far = initial()
        for old_end, old_start in sessions:
            entry = lookup(session_key(raw, old_start, old_end))
            so_far = merge(key, so_far, None if entry is None else entry[0])
        return so_far

    return merged


def _replacing(
    wiring: Wiring,
    store: SessionStore[Any, Any],
    aggregation: Aggregation,
    old_values: OldValues,
    *,
    emits: bool,
) -> Callable[..., None]:
    """Return a function that adds a record and replaces the merged sessions, here and downstream."""
    take_out, take_place = store.take_out, store.merge
    add = aggregation.add_to_merged or aggregation.add
    update, give_back, cached = store.update, store.give_back, store.spec.cached
    forward = None if emits or cached else wiring.forward
    immutable_types: dict[type, bool] = {}
    retire = _retiring(wiring, store, old_values)

    def replace(
        key: Any,
        raw: bytes,
        value: Any,
        so_far: Any,
        replaced: list[Bounds],
        start: int,
        end: int,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if forward is not None and (start != end or start != timestamp):
            retire(key, raw, replaced, headers)
            replaced = []
        so_far = add(key, value, so_far)
        if so_far is None:
            for old_end, old_start in replaced:
                take_out(raw, old_start, old_end, headers)
            if not cached and (end, start) not in replaced:
                # As in Kafka Streams, a store without a cache deletes the session even if it never existed.
                take_out(raw, start, end, headers)
        else:
            stored_key = take_place(raw, replaced, start, end, headers)
            if cached and cannot_change(value, immutable_types):
                give_back(stored_key, so_far, end, headers)
            else:
                update(stored_key, so_far, end, headers)
        if forward is not None:
            forward(Windowed(key, Window(start, end)), (so_far, None), end, ())

    return replace


def _retiring(
    wiring: Wiring, store: SessionStore[Any, Any], old_values: OldValues
) -> Callable[[Any, bytes, list[Bounds], Headers], None]:
    """Return a function that deletes sessions of an uncached store and forwards their deletions."""
    lookup, take_out, forward, tells_old = store.borrow, store.take_out, wiring.forward, old_values.are_told

    def retire(key: Any, raw: bytes, sessions: list[Bounds], headers: Headers) -> None:
        for old_end, old_start in sessions:
            entry = lookup(session_key(raw, old_start, old_end)) if tells_old else None
            take_out(raw, old_start, old_end, headers)
            old = None if entry is None else entry[0]
            forward(Windowed(key, Window(old_start, old_end)), (None, old), old_end, ())

    return retire
