"""Aggregation by key and session (Kafka's KStreamSessionWindowAggregate).

A record, its key's sessions no further than the gap from it, and nothing else make one session. It takes the
others' place: they become tombstones, downstream too, and it comes after them, with its end as timestamp.
Records without a key are left out; one without a value is a record like others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streams.processors.aggregate import Adder, cannot_change
from streams.processors.emit import emit_closed, spans_of_sessions
from streams.processors.record import Headers, Process
from streams.processors.table import forward_changes
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

    def changed(stored_key: bytes, value: Any, timestamp: int) -> None:
        nonlocal flushed
        end = session_end(stored_key)
        if value is not None or end > flushed - store.spec.retention_ms:
            listener(stored_key, value, timestamp)
        flushed = max(flushed, end)

    store.listener = changed


@dataclass(frozen=True, slots=True)
class Merging:
    """How sessions are put together: ``merger(key, so_far, session)``, beginning with ``initializer()``."""

    initializer: Callable[[], Any]
    merger: Callable[[Any, Any, Any], Any]


def merging_counts() -> Merging:
    """Of counts."""
    return Merging(int, lambda key, one, other: one + other)


def merging_reduced(reducer: Callable[[Any, Any], Any]) -> Merging:
    """Of reduced values."""
    return Merging(lambda: None, lambda key, one, other: other if one is None else reducer(one, other))


def aggregate_sessions(
    store_name: str, windows: SessionWindows, adder: Adder, merging: Merging, emit: EmitStrategy
) -> Operator:
    """One value per key and session."""
    gap, grace = windows.inactivity_gap_ms, windows.grace_ms
    initializer, merger = merging.initializer, merging.merger

    def build(wiring: Wiring) -> Process:
        store = wiring.session_store(store_name)
        find, lookup, take_out, put_in = store.find, store.borrow, store.take_out, store.put_in
        update, give_back, cached = store.update, store.give_back, store.spec.cached
        serialize, dropped, late = store.spec.key_serde.serialize, wiring.metrics.dropped, wiring.metrics.late
        emits = emit == "on_window_close"
        on_close = emit_closed(wiring, store, spans_of_sessions(windows))
        forward = None if emits or cached else wiring.forward
        known: dict[type, bool] = {}
        if not emits:
            forward_changes(wiring, store)
            _leave_out_expired(store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None:
                dropped()
                return
            if timestamp > store.stream_time:
                store.stream_time = timestamp
            close, raw = store.stream_time - grace - gap, serialize(key)
            found = find(raw, timestamp - gap, timestamp + gap)
            start = end = timestamp
            if found:
                start, end = min(start, *[each[1] for each in found]), max(end, found[-1][0])
            if end < close:
                late()
            else:
                so_far = initializer()
                for old_end, old_start in found:
                    old = lookup(session_key(raw, old_start, old_end))
                    so_far = merger(key, so_far, None if old is None else old[0])
                if start != end or start != timestamp:
                    for old_end, old_start in found:
                        if old_start != start or old_end != end:
                            take_out(raw, old_start, old_end)
                        if forward is not None:
                            forward(Windowed(key, Window(old_start, old_end)), None, old_end, ())
                so_far = adder(key, value, so_far)
                stored_key = session_key(raw, start, end)
                if so_far is None:
                    take_out(raw, start, end)
                else:
                    put_in(raw, start, end)
                    if cached and cannot_change(value, known):
                        give_back(stored_key, so_far, end)
                    else:
                        update(stored_key, so_far, end)
                if forward is not None:
                    forward(Windowed(key, Window(start, end)), so_far, end, ())
            if emits:
                on_close(close, headers)

        return process

    return build
