"""Aggregation by key and session (Kafka's KStreamSessionWindowAggregate).

A record, its key's sessions no further than the gap from it, and nothing else make one session. It takes the
others' place: they become tombstones, downstream too, and it comes after them, with its end as timestamp.
Records without a key are left out; one without a value is a record like others.
"""

from __future__ import annotations

from typing import Any

from streams.processors.aggregate import Aggregation, cannot_change
from streams.processors.emit import emit_closed, spans_of_sessions
from streams.processors.idle import let_close
from streams.processors.record import Headers, Process
from streams.processors.table import OldValues, forward_changes
from streams.processors.windows import EmitStrategy, SessionWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed
from streams.state import SessionStore
from streams.state.session_key import session_key


def _leave_out_expired(store: SessionStore[Any, Any]) -> None:
    """Have nobody downstream of a cached store hear that a session is gone that is past retention.

    Kafka Streams, too, finds such a session in its cache; but when the cache is flushed, the store below does
    not have it any more, so that it seems never to have been there.
    """
    listener, session_end = store.listener, store.time_of
    if listener is None:
        return
    flushed = store.newest

    def changed(stored_key: bytes, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        nonlocal flushed
        end = session_end(stored_key)
        if end > flushed - store.spec.retention_ms:
            listener(stored_key, new, old, timestamp, headers)
        elif new is not None:
            listener(stored_key, new, None, timestamp, headers)
        flushed = max(flushed, end)

    store.listener = changed


def aggregate_sessions(
    store_name: str,
    windows: SessionWindows,
    aggregation: Aggregation,
    emit: EmitStrategy,
    old_values: OldValues,
    clock: str = "",
    idle_ms: int | None = None,
) -> Operator:
    """One value per key and session. ``idle_ms``: see `let_close`."""
    gap, grace = windows.inactivity_gap_ms, windows.grace_ms
    initial, add, merge = aggregation.initial, aggregation.add, aggregation.merge
    assert merge is not None, "sessions merge"

    def build(wiring: Wiring) -> Process:
        store = wiring.session_store(store_name)
        time = store.clock(clock)
        find, lookup, take_out, take_place = store.find, store.borrow, store.take_out, store.merge
        update, give_back, cached = store.update, store.give_back, store.spec.cached
        serialize, dropped, late = store.spec.key_serde.serialize, wiring.metrics.dropped, wiring.metrics.late
        emits = emit == "on_window_close"
        spans = spans_of_sessions(windows)
        on_close = emit_closed(wiring, store, spans)
        let_close(wiring, store, windows, spans if emits else None, clock, idle_ms)
        forward = None if emits or cached else wiring.forward
        known: dict[type, bool] = {}
        tells_old = old_values.are_told
        if not emits:
            forward_changes(wiring, store, old_values)
            _leave_out_expired(store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                dropped()
                return
            if timestamp > time.stream_time:
                time.stream_time = timestamp
            close, raw = time.stream_time - grace - gap, serialize(key)
            found = find(raw, timestamp - gap, timestamp + gap)
            start = end = timestamp
            for old_end, old_start in found:
                if old_start < start:
                    start = old_start
                if old_end > end:
                    end = old_end
            if end < close:
                late()
            else:
                so_far = initial()
                for old_end, old_start in found:
                    entry = lookup(session_key(raw, old_start, old_end))
                    so_far = merge(key, so_far, None if entry is None else entry[0])
                if forward is not None and (start != end or start != timestamp):
                    for old_end, old_start in found:
                        entry = lookup(session_key(raw, old_start, old_end)) if tells_old else None
                        take_out(raw, old_start, old_end, headers)
                        old = None if entry is None else entry[0]
                        forward(Windowed(key, Window(old_start, old_end)), (None, old), old_end, ())
                    found = []
                so_far = add(key, value, so_far)
                if so_far is None:
                    for old_end, old_start in found:
                        take_out(raw, old_start, old_end, headers)
                else:
                    stored_key = take_place(raw, found, start, end, headers)
                    if cached and cannot_change(value, known):
                        give_back(stored_key, so_far, end, headers)
                    else:
                        update(stored_key, so_far, end, headers)
                if forward is not None:
                    forward(Windowed(key, Window(start, end)), (so_far, None), end, ())
            if emits:
                on_close(close, headers)

        return process

    return build
