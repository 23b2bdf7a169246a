"""Emission on window close (KIP-825): forwarding each window once, when no record can change it any more.

It is called after each record, and runs at most every `windowed_emit_interval_ms` of wall clock. It forwards
the windows that closed since its last run, by time and key. The time up to which it has emitted is committed
with the store's stream time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streams.processors.record import Headers
from streams.processors.windowing.windows import SessionWindows, SlidingWindows, TimeWindows
from streams.processors.wiring import Wiring
from streams.state import TimedStore

Emit: TypeAlias = Callable[[int, Headers], None]
"""Takes the time (ms) up to which windows are closed, and the headers of the record that closed them."""

Span: TypeAlias = tuple[int, int]
Spans: TypeAlias = Callable[[int, int], Span | None]
"""Returns the first and last store time (ms) of the windows that closed between two times.

Takes the previous and the new time (ms) up to which windows are closed; the previous one is -1 at first.
Returns None if there are none, so that the previous time stays.
"""


def emit_closed(wiring: Wiring, store: TimedStore, spans: Spans, *, at_once: bool = False) -> Emit:
    """Return a function to call after each record, which emits the closed windows.

    ``at_once``: ignore the interval between two runs.
    """
    task, forward, lookup, decode = wiring.task, wiring.forward, store.lookup, store.decode_key
    next_at = 0

    def emit(close: int, headers: Headers) -> None:
        nonlocal next_at
        if task.wall_clock < next_at and not at_once:
            return
        next_at = task.wall_clock + task.windowed_emit_interval_ms
        if close <= store.emitted_to or (span := spans(store.emitted_to, close)) is None:
            return
        store.emitted_to = close
        for key in store.closed(max(span[0], store.emitted_from), span[1]):
            entry = lookup(key)
            if entry is not None:
                forward(decode(key), (entry[0], None), entry[1], headers)

    return emit


def spans_of_time_windows(windows: TimeWindows) -> Spans:
    """Return the spans of starts of time windows, whose ends are exclusive."""
    size, starts = windows.size_ms, windows.starts()

    def span(emitted: int, close: int) -> Span | None:
        last = close - size
        if last < 0:
            return None
        if emitted < 0:
            return 0, last
        first = max(0, emitted - size) + 1
        return None if starts(last) == starts(first - 1) else (first, last)

    return span


def spans_of_sliding_windows(windows: SlidingWindows) -> Spans:
    """Return the spans of starts of sliding windows, whose ends are inclusive."""
    size = windows.time_difference_ms

    def span(emitted: int, close: int) -> Span | None:
        last = close - size - 1
        return None if last < 0 else (0 if emitted < 0 else max(0, emitted - size), last)

    return span


def spans_of_sessions(windows: SessionWindows) -> Spans:
    """Return the spans of ends of sessions, which are inclusive."""

    def span(emitted: int, close: int) -> Span | None:
        first, last = max(0, emitted), close - 1
        return None if last < first else (first, last)

    return span
