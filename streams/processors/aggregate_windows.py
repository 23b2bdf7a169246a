"""Aggregation by key and time window: tumbling, hopping and unlimited windows.

A record counts in each of its windows whose end lies behind stream time less grace (Kafka's
KStreamWindowAggregate). One without a key is left out; one without a value is a record like others.

The walk over a record's windows stands in three functions, one per way of telling results, since it is the
whole of what happens per record: a call within it would be paid for each window of each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.processors.aggregate import (
    Addition,
    Aggregation,
    addition,
    addition_unheard,
    run_addition,
    with_run,
)
from streams.processors.emit import emit_closed, spans_of_time_windows
from streams.processors.expired import begin_anew_past_retention, tell_as_stored
from streams.processors.idle import let_close
from streams.processors.record import Headers, InputRecord, Process
from streams.processors.table import OldValues
from streams.processors.windows import EmitStrategy, TimeWindows, UnlimitedWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed
from streams.serdes.windowed import FOREVER
from streams.state import ToFold, WindowStore
from streams.state.window_key import window_key, window_suffix


def aggregate_windows(
    store_name: str,
    windows: TimeWindows | UnlimitedWindows,
    aggregation: Aggregation,
    emit: EmitStrategy,
    old_values: OldValues,
    clock: str | None = None,
    idle_ms: int | None = None,
) -> Operator:
    """One value per key and window. ``idle_ms``: see `let_close`."""

    def build(wiring: Wiring) -> Process:
        if isinstance(windows, TimeWindows):
            spans = spans_of_time_windows(windows) if emit == "on_window_close" else None
            let_close(wiring, wiring.window_store(store_name), windows, spans, clock or "", idle_ms)
            if emit == "on_window_close":
                return _on_close(wiring, store_name, windows, aggregation)
            if windows.advance_ms == windows.size_ms:
                return _tumbling(wiring, store_name, windows, aggregation, old_values, clock)
        return _on_update(wiring, store_name, windows, aggregation, old_values, clock)

    return build


def _addition(
    wiring: Wiring,
    store: WindowStore[Any, Any],
    aggregation: Aggregation,
    old_values: OldValues,
    clock: str | None,
) -> Addition:
    """As `addition`; an operator that has a ``clock`` may be behind others that write the store."""
    add = addition(wiring, store, aggregation, old_values)
    if clock is None:
        return add
    tell_as_stored(store)
    return begin_anew_past_retention(store, add)


def _tumbling(
    wiring: Wiring,
    store_name: str,
    windows: TimeWindows,
    aggregation: Aggregation,
    old_values: OldValues,
    clock: str | None,
) -> Process:
    """As `_on_update`, of one window per record."""
    size, grace = windows.size_ms, windows.grace_ms
    store = wiring.window_store(store_name)
    time = store.clock(clock or "")
    dropped, late = wiring.metrics.dropped, wiring.metrics.late
    add = _addition(wiring, store, aggregation, old_values, clock)
    serialize, cached = store.spec.key_serde.serialize, store.spec.cached

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            dropped()
            return
        start = timestamp - timestamp % size
        if timestamp > time.stream_time:
            time.stream_time = timestamp
            if start > store.newest:
                store.newest = start
        elif start + size <= time.stream_time - grace:
            late()
            return
        elif start > store.newest:  # time is ahead of the windows since they were closed on an idle input
            store.newest = start
        windowed = None if cached else Windowed(key, Window(start, start + size))
        add(window_key(serialize(key), start), windowed, key, value, timestamp, headers)

    add_run = run_addition(wiring, store, aggregation, add)
    if add_run is None:
        return process

    def take(keys: Sequence[bytes | None], records: list[InputRecord]) -> None:
        kept: list[ToFold] = []
        keep, close = kept.append, time.stream_time - grace
        suffix, suffix_of = b"", -1
        for raw, (timestamp, key, value, headers, offset) in zip(keys, records, strict=True):
            if raw is None:
                dropped()
                continue
            start = timestamp - timestamp % size
            if timestamp > time.stream_time:
                time.stream_time = timestamp
                close = timestamp - grace
            elif start + size <= close:
                late()
                continue
            if start != suffix_of:
                suffix, suffix_of = window_suffix(start), start
                if start > store.newest:
                    store.newest = start
            keep((raw + suffix, key, value, timestamp, headers, offset))
        add_run(kept)

    def may_be_past_retention() -> bool:
        return clock is not None and time.stream_time - grace - size + 1 < store.found_from

    return with_run(wiring, process, serialize, take, one_by_one=may_be_past_retention)


def _on_update(
    wiring: Wiring,
    store_name: str,
    windows: TimeWindows | UnlimitedWindows,
    aggregation: Aggregation,
    old_values: OldValues,
    clock: str | None,
) -> Process:
    size, grace, starts = windows.size_ms, windows.grace_ms, windows.starts()
    store = wiring.window_store(store_name)
    time = store.clock(clock or "")
    dropped, late = wiring.metrics.dropped, wiring.metrics.late
    add = _addition(wiring, store, aggregation, old_values, clock)
    serialize, cached = store.spec.key_serde.serialize, store.spec.cached

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            dropped()
            return
        if timestamp > time.stream_time:
            time.stream_time = timestamp
        close, raw = time.stream_time - grace, serialize(key)
        for start in starts(timestamp):
            if start + size <= close:
                late()
                continue
            if start > store.newest:
                store.newest = start
            windowed = None if cached else Windowed(key, Window(start, min(start + size, FOREVER)))
            add(window_key(raw, start), windowed, key, value, timestamp, headers)

    add_run = run_addition(wiring, store, aggregation, add)
    if add_run is None:
        return process

    def take(keys: Sequence[bytes | None], records: list[InputRecord]) -> None:
        kept: list[ToFold] = []
        keep = kept.append
        suffixes: dict[int, bytes] = {}
        for raw, (timestamp, key, value, headers, offset) in zip(keys, records, strict=True):
            if raw is None:
                dropped()
                continue
            if timestamp > time.stream_time:
                time.stream_time = timestamp
            close = time.stream_time - grace
            for start in starts(timestamp):
                if start + size <= close:
                    late()
                    continue
                suffix = suffixes.get(start)
                if suffix is None:
                    suffix = suffixes[start] = window_suffix(start)
                    if start > store.newest:
                        store.newest = start
                keep((raw + suffix, key, value, timestamp, headers, offset))
        add_run(kept)

    def may_be_past_retention() -> bool:
        return clock is not None and time.stream_time - grace - size + 1 < store.found_from

    return with_run(wiring, process, serialize, take, one_by_one=may_be_past_retention)


def _on_close(wiring: Wiring, store_name: str, windows: TimeWindows, aggregation: Aggregation) -> Process:
    size, grace, starts = windows.size_ms, windows.grace_ms, windows.starts()
    store = time = wiring.window_store(store_name)
    dropped, late = wiring.metrics.dropped, wiring.metrics.late
    add, serialize = addition_unheard(store, aggregation), store.spec.key_serde.serialize
    emit = emit_closed(wiring, store, spans_of_time_windows(windows))

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is None:
            dropped()
            return
        if timestamp > time.stream_time:
            time.stream_time = timestamp
        close, raw = time.stream_time - grace, serialize(key)
        for start in starts(timestamp):
            if start + size <= close:
                late()
                continue
            if start > store.newest:
                store.newest = start
            stored_key = window_key(raw, start)
            add(stored_key, None, key, value, timestamp, headers)
            store.recent.setdefault(start, {})[stored_key] = None
        emit(close, headers)

    return process
