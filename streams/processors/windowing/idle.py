"""Closing of windows on idle inputs: an aggregation's windows are closed as if stream time had passed them.

The task decides when (`streams.runtime.task.idle`). Closing moves the aggregation's stream time to the close
of its last window. Stream time never goes back, so later records of these windows are late. The time is
committed with the task's positions as if a record had moved it.
"""

from __future__ import annotations

from streams.processors.windowing.emit import Spans, emit_closed
from streams.processors.windowing.windows import SessionWindows, SlidingWindows, TimeWindows
from streams.processors.wiring import Wiring
from streams.state import TimedStore


def let_close(
    wiring: Wiring,
    store: TimedStore,
    windows: TimeWindows | SlidingWindows | SessionWindows,
    spans: Spans | None,
    clock: str,
    idle_ms: int | None,
) -> None:
    """Register a function that closes an aggregation's windows; call it after ``idle_ms`` of idle inputs.

    ``idle_ms``: None for never; other nodes may still close the windows. ``spans``: None unless windows are
    emitted when they close. ``clock``: see `TimedStore.clock`.
    """
    time = store.clock(clock)
    emit = None if spans is None else emit_closed(wiring, store, spans, at_once=True)
    closed_after, grace = windows.closed_after_ms, windows.closing_ms

    def close() -> None:
        if store.newest < 0:
            return
        time.stream_time = max(time.stream_time, store.newest + closed_after)
        if emit is not None:
            emit(time.stream_time - grace, ())

    wiring.task.window_closers[wiring.node] = close
    if idle_ms is not None:
        wiring.task.on_idle.append((idle_ms, close))
