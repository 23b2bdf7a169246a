"""Aggregation by key and sliding window (KIP-450; Kafka's KStreamSlidingWindowAggregate).

A record at time t belongs to all existing windows of its key around t. Adding it may also create windows:

- its left window, `[t - difference, t]`;
- its right window, `[t + 1, t + 1 + difference]`, if it has records;
- the right window of the previous record, if the new record is in it.

A new window begins with the value of a window with the same records. `lookup` returns a value of its own to
each caller, so that value may be changed in place. Windows do not start before 0: all records before
`difference` share the window that starts at 0, as their left window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from streams.processors.aggregates.aggregate import Aggregation
from streams.processors.aggregates.expired import hide_expired_old_values
from streams.processors.record import Headers, Process
from streams.processors.tables.table import OldValues, forward_changes
from streams.processors.windowing.emit import emit_closed, spans_of_sliding_windows
from streams.processors.windowing.idle import let_close
from streams.processors.windowing.windows import EmitStrategy, SlidingWindows
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Window, Windowed
from streams.state import Entry, WindowStore
from streams.state.window_key import window_key


def aggregate_sliding(
    store_name: str,
    windows: SlidingWindows,
    aggregation: Aggregation,
    emit: EmitStrategy,
    old_values: OldValues,
    clock: str | None = None,
    idle_ms: int | None = None,
) -> Operator:
    """Return the operator of an aggregation with one result per key and window.

    ``idle_ms``: see `let_close`.
    """
    difference, grace = windows.time_difference_ms, windows.grace_ms

    def build(wiring: Wiring) -> Process:
        store = wiring.window_store(store_name)
        time = store.clock(clock or "")
        serialize, dropped, late = store.spec.key_serde.serialize, wiring.metrics.dropped, wiring.metrics.late
        spans, emits = spans_of_sliding_windows(windows), emit == "on_window_close"
        on_close = emit_closed(wiring, store, spans)
        let_close(wiring, store, windows, spans if emits else None, clock or "", idle_ms)
        forward = wiring.forward if emit == "on_window_update" and not store.spec.cached else None
        if emit == "on_window_update":
            forward_changes(wiring, store, old_values)
            if clock is not None:  # The operator may lag behind others that write the store.
                hide_expired_old_values(store)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            if timestamp > time.stream_time:
                time.stream_time = timestamp
            close = time.stream_time - grace
            if timestamp + difference < close:
                late()
                return
            addition = _Addition(store, aggregation, forward, late, difference, close)
            addition.begin(serialize(key), key, value, timestamp, headers, old_values.are_told)
            if timestamp < difference:
                addition.add_early()
                return
            addition.add()
            if emit == "on_window_close":
                on_close(close, headers)

        return process

    return build


class _Addition:
    """The addition of one record to its windows. ``forward`` is None if updates are not forwarded at once."""

    __slots__ = (
        "_aggregation",
        "_close",
        "_difference",
        "_forward",
        "_headers",
        "_key",
        "_late",
        "_raw",
        "_starts",
        "_store",
        "_tells_old",
        "_timestamp",
        "_value",
    )

    def __init__(
        self,
        store: WindowStore[Any, Any],
        aggregation: Aggregation,
        forward: Process | None,
        late: Callable[[], None],
        difference: int,
        close: int,
    ) -> None:
        self._store = store
        self._aggregation = aggregation
        self._forward = forward
        self._late = late
        self._difference = difference
        self._close = close

    def begin(
        self, raw: bytes, key: Any, value: Any, timestamp: int, headers: Headers, tells_old: bool
    ) -> None:
        """Set the record, and look up the starts of the windows near it. Call `add` or `add_early` next."""
        self._raw, self._key, self._value = raw, key, value
        self._timestamp, self._headers = timestamp, headers
        self._tells_old = tells_old and self._forward is not None
        store = self._store
        starts = store.key_times.of(raw)
        lowest = max(timestamp - 2 * self._difference, store.found_from)
        self._starts = starts[bisect_left(starts, lowest) : bisect_left(starts, timestamp + 2)]

    def add(self) -> None:
        """Add the record, to the latest window first, as Kafka does."""
        timestamp, difference, starts = self._timestamp, self._difference, self._starts
        left = right = previous = None
        has_left = False
        for start in reversed(starts):
            if start > timestamp:
                continue
            entry = self._get(start)
            if start + difference > timestamp:
                right = right or self._get(start)
                self._update(start, entry)
            elif start + difference == timestamp:
                has_left = True
                self._update(start, entry)
                if entry[1] >= timestamp:
                    return  # an earlier record of the same time created the other windows
                previous = entry[1]
            else:
                left, previous = entry, entry[1]
                break
        if previous is not None and previous + 1 + difference >= timestamp:
            self._update_unless_there(previous + 1)
        if not has_left:
            holds = previous is not None and previous >= timestamp - difference
            self._update(timestamp - difference, (left[0], timestamp) if holds and left else None)
        self._add_right(right)

    def add_early(self) -> None:
        """Add a record whose left window would begin before 0."""
        timestamp, starts = self._timestamp, self._starts
        right = previous = None
        shared = self._get(0) if starts and starts[0] == 0 else None
        if shared is not None and shared[1] < timestamp:
            previous = shared[1]
        for start in starts:
            if 0 < start <= timestamp:
                entry = self._get(start)
                right = self._get(start)
                self._update(start, entry)
        if right is None and shared is not None and shared[1] > timestamp:
            right = self._get(0)
        self._add_right(right)
        if previous is not None:
            self._update_unless_there(previous + 1)
        self._update(0, shared)

    def _get(self, start: int) -> Entry:
        entry = self._store.lookup(window_key(self._raw, start))
        assert entry is not None, f"{self._store.name} has no window of {self._key!r} from {start} on"
        return entry

    def _update_unless_there(self, start: int) -> None:
        starts = self._starts
        at = bisect_left(starts, start)
        if at == len(starts) or starts[at] != start:
            self._update(start, None)

    def _update(self, start: int, entry: Entry | None) -> None:
        """Add the record to a window with the value and time of ``entry``; None for a new window."""
        if start + self._difference < self._close:
            self._late()
            return
        timestamp = self._timestamp
        add, initial = self._aggregation.add, self._aggregation.initial
        if entry is None:
            old = initial() if self._tells_old else None
            self._put(start, add(self._key, self._value, None), timestamp, old)
        else:
            old = deepcopy(entry[0]) if self._tells_old else None
            self._put(start, add(self._key, self._value, entry[0]), max(timestamp, entry[1]), old)

    def _add_right(self, right: Entry | None) -> None:
        """Create the right window, unless it exists or has no records.

        ``right``: the value and time of a window around the record, without the record.
        """
        timestamp, starts = self._timestamp, self._starts
        if right is not None and right[1] > timestamp and not (starts and starts[-1] == timestamp + 1):
            self._put(timestamp + 1, *right)

    def _put(self, start: int, value: Any, timestamp: int, old: Any = None) -> None:
        store, raw = self._store, self._raw
        store.newest = max(store.newest, start)
        stored_key = window_key(raw, start)
        store.update(stored_key, value, timestamp, self._headers)
        if value is None:
            store.key_times.remove(raw, start)
        else:
            store.key_times.add(raw, start)
            if store.spec.by_time:
                store.recent.setdefault(start, {})[stored_key] = None
        if self._forward is not None:
            window = Window(start, start + self._difference)
            self._forward(Windowed(self._key, window), (value, old), timestamp, self._headers)
