"""Windows that close on idle inputs: an aggregation's windows are closed as if stream time had reached that.

The task decides when (`streams.runtime.task.idle`). Closing moves the aggregation's stream time to the end
of its last window, and it never goes back: records that come for these windows later are late. The time is
kept with the task's positions as if a record had moved it.
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
    """Let others close an aggregation's windows, and close them once the task was idle for ``idle_ms``.

    ``spans``: of windows that are told when they close, None for others. ``clock``: see `TimedStore.clock`.
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
