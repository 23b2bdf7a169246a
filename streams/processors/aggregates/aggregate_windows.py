"""Aggregation by key and time window: tumbling, hopping and unlimited windows.

A record is added to each of its windows that ends after stream time less grace (Kafka's
KStreamWindowAggregate). A record without a key is dropped; one without a value is processed like others.

Consecutive records are mostly in the same windows, so these are computed once for many records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streams.processors.aggregates.aggregate import Addition, Aggregation, addition, silent_addition
from streams.processors.aggregates.expired import hide_expired_old_values, restart_expired
from streams.processors.record import Headers, Process
from streams.processors.tables.table import OldValues, forward_changes
from streams.processors.windowing.emit import emit_closed, spans_of_time_windows
from streams.processors.windowing.idle import let_close
from streams.processors.windowing.windows import EmitStrategy, TimeWindows, UnlimitedWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Windowed
from streams.state import WindowStore
from streams.state.timed import Clock
from streams.state.window_key import window_start, window_suffix

AdditionToWindows: TypeAlias = Callable[[bytes, list[bytes], Any, Any, int, Headers], None]
"""Takes the bytes of a key, the suffixes of its windows' stored keys, and the record's key, value, timestamp
and headers.
"""


def aggregate_windows(
    store_name: str,
    windows: TimeWindows | UnlimitedWindows,
    aggregation: Aggregation,
    emit: EmitStrategy,
    old_values: OldValues,
    clock: str | None = None,
    idle_ms: int | None = None,
) -> Operator:
    """Return the operator of an aggregation with one result per key and window.

    ``idle_ms``: see `let_close`.
    """

    def build(wiring: Wiring) -> Process:
        store = wiring.window_store(store_name)
        if isinstance(windows, TimeWindows):
            on_close = emit == "on_window_close"
            spans = spans_of_time_windows(windows) if on_close else None
            let_close(wiring, store, windows, spans, clock or "", idle_ms)
            if on_close:
                return _on_close(wiring, store, windows, aggregation)
        add = _addition(wiring, store, aggregation, old_values, clock)
        return _in_windows(wiring, store, store.clock(clock or ""), windows, add)

    return build


def _addition(
    wiring: Wiring,
    store: WindowStore[Any, Any],
    aggregation: Aggregation,
    old_values: OldValues,
    clock: str | None,
) -> AdditionToWindows:
    """Return a function that adds a record to its windows and forwards the changes.

    An operator with a ``clock`` may lag behind others that write the store.
    """
    if store.spec.cached and clock is None:
        forward_changes(wiring, store, old_values)
        return _silent_addition(store, aggregation)
    add = addition(wiring, store, aggregation, old_values)
    if clock is not None:
        hide_expired_old_values(store)
        add = restart_expired(store, add)
    return _to_each(store, add)


def _silent_addition(store: WindowStore[Any, Any], aggregation: Aggregation) -> AdditionToWindows:
    folding = store.folding(aggregation.add, counts=aggregation.counts)
    if folding is not None:
        return folding.add_to_each
    return _to_each(store, silent_addition(store, aggregation))


def _to_each(store: WindowStore[Any, Any], add: Addition) -> AdditionToWindows:
    cached, window_of = store.spec.cached, store.window_of

    def add_to_each(
        raw: bytes, suffixes: list[bytes], key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        for suffix in suffixes:
            windowed = None if cached else Windowed(key, window_of(suffix))
            add(raw + suffix, windowed, key, value, timestamp, headers)

    return add_to_each


def _in_windows(
    wiring: Wiring,
    store: WindowStore[Any, Any],
    time: Clock,
    windows: TimeWindows | UnlimitedWindows,
    add: AdditionToWindows,
) -> Process:
    size, advance, grace, starts = windows.size_ms, windows.advance_ms, windows.grace_ms, windows.starts()
    dropped, late = wiring.metrics.dropped, wiring.metrics.late
    serialize = store.spec.key_serde.serialize
    # All records with timestamps in `[since, until)` are in the same windows, whose suffixes are `same`. The
    # first of these windows ends at `end`.
    since = until = end = 0
    same: list[bytes] = []

    def find(timestamp: int) -> list[bytes]:
        """Return the suffixes of the record's windows that are not closed."""
        nonlocal since, until, end, same
        close, suffixes = time.stream_time - grace, []
        all_starts = starts(timestamp)
        for start in all_starts:
            if start + size <= close:
                late()
                continue
            if start > store.newest:
                store.newest = start
            suffixes.append(window_suffix(start))
        if suffixes and len(suffixes) == len(all_starts):
            first, last = all_starts[0], all_starts[-1]
            since, until, end = (
                max(last, first + size - advance),
                min(last + advance, first + size),
                first + size,
            )
            same = suffixes
        return suffixes

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            dropped()
            return
        if timestamp > time.stream_time:
            time.stream_time = timestamp
        is_same = since <= timestamp < until and end > time.stream_time - grace
        if suffixes := same if is_same else find(timestamp):
            add(serialize(key), suffixes, key, value, timestamp, headers)

    return process


def _on_close(
    wiring: Wiring, store: WindowStore[Any, Any], windows: TimeWindows, aggregation: Aggregation
) -> Process:
    emit = emit_closed(wiring, store, spans_of_time_windows(windows))
    add, grace = _silent_addition(store, aggregation), windows.grace_ms

    def add_and_note(
        raw: bytes, suffixes: list[bytes], key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        add(raw, suffixes, key, value, timestamp, headers)
        for suffix in suffixes:
            store.recent.setdefault(window_start(suffix), {})[raw + suffix] = None

    add_to_windows = _in_windows(wiring, store, store, windows, add_and_note)

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        add_to_windows(key, value, timestamp, headers)
        if key is not None:
            emit(store.stream_time - grace, headers)

    return process
