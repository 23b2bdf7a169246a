"""The final contents of windows, and the results of closed ones, against models that go through all windows
at each record. The results do not depend on what is in memory.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streams import Materialized, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows, Windowed
from streams.testing import TopologyTestDriver
from tests.support import depth

Event = tuple[str, int]
"""Key and timestamp."""
FOREVER = 10**6
"""A grace longer than all of the events."""

events = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=25)
sizes = st.sampled_from([1, 4, 10])
graces = st.sampled_from([0, 3, 20, FOREVER])


def counted(windows: Any, events: list[Event], *, shrunk: bool = False, **options: Any) -> dict[Any, int]:
    """Return the counts in the store, by key, start and end, when all records are processed.

    ``shrunk``: nothing stays in memory from one record to the next.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    store = Materialized(name="store", retention=2 * FOREVER, **options)
    builder.stream("in").group_by_key().windowed_by(windows).count(store=store).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for key, timestamp in events:
            driver.input_topic("in").pipe_input(key, "", timestamp)
            if shrunk:
                driver.store("store").shrink()
        counts: dict[Windowed[str], int] = dict(driver.store("store").all())  # type: ignore[attr-defined]
        output = driver.output_topic("out").read_table()
    assert output == counts, "what downstream knows is what the store has"
    return {(key.key, *key.window): count for key, count in counts.items()}


def aligned(events: list[Event], windows: TimeWindows) -> dict[Any, int]:
    """Return the counts of aligned windows. A record counts in all windows around it that are not closed when
    it comes.
    """
    counts, stream_time = dict[Any, int](), -1
    for key, timestamp in events:
        stream_time = max(stream_time, timestamp)
        for start in range(0, timestamp + 1, windows.advance_ms):
            window = (key, start, start + windows.size_ms)
            if timestamp < window[2] and window[2] > stream_time - windows.grace_ms:
                counts[window] = counts.get(window, 0) + 1
    return counts


@settings(max_examples=depth.times(100))
@given(events, sizes, st.integers(1, 10), graces, st.booleans())
def test_time_windows(events: list[Event], size: int, advance: int, grace: int, cached: bool) -> None:
    windows = TimeWindows(size, advance=min(advance, size), grace=grace)
    assert counted(windows, events, caching=cached) == aligned(events, windows)


def sessions(events: list[Event], windows: SessionWindows) -> dict[Any, int]:
    """Return the counts of sessions. A record joins all sessions within the gap, unless the merged session is
    closed.
    """
    gap, counts, stream_time = windows.inactivity_gap_ms, dict[Any, int](), -1
    for key, timestamp in events:
        stream_time = max(stream_time, timestamp)
        near = [each for each in counts if each[0] == key and each[1] - gap <= timestamp <= each[2] + gap]
        start, end = (
            min([timestamp, *(each[1] for each in near)]),
            max([timestamp, *(each[2] for each in near)]),
        )
        if end >= stream_time - windows.grace_ms - gap:
            counts[key, start, end] = 1 + sum(counts.pop(each) for each in near)
    return counts


@settings(max_examples=depth.times(100))
@given(events, st.sampled_from([0, 1, 4, 10]), graces, st.booleans(), st.booleans())
def test_sessions(events: list[Event], gap: int, grace: int, cached: bool, shrunk: bool) -> None:
    windows = SessionWindows(gap, grace=grace)
    assert counted(windows, events, caching=cached, shrunk=shrunk) == sessions(events, windows)


def without_half_late(events: list[Event], windows: SlidingWindows) -> list[Event]:
    """Return the records whose own window is open or whose windows are all closed. For any other record,
    Kafka updates only the windows that exist already: the scripts in golden test those.
    """
    complete: list[Event] = []
    stream_time = -1
    for key, timestamp in events:
        stream_time = max(stream_time, timestamp)
        if not timestamp < stream_time - windows.grace_ms <= timestamp + windows.time_difference_ms:
            complete.append((key, timestamp))
    return complete


def sliding(events: list[Event], windows: SlidingWindows) -> dict[Any, int]:
    """Return the counts of sliding windows: those that end with a record, or begin right after one, and have
    records.

    Each record counts in those that are not closed when it comes, be they there by then or made later.
    """
    difference, stream_time = windows.time_difference_ms, -1
    counts: dict[Any, int] = {}
    counted_events: list[Event] = []
    for key, timestamp in events:
        stream_time = max(stream_time, timestamp)
        close = stream_time - windows.grace_ms
        if timestamp + difference < close:
            continue
        counted_events.append((key, timestamp))
        for window in counts:
            if window[0] == key and window[1] <= timestamp <= window[2] and window[2] >= close:
                counts[window] += 1
        starts = {time + 1 for each, time in counted_events if each == key} | {timestamp - difference}
        for window in ((key, start, start + difference) for start in starts):
            has = sum(each == key and window[1] <= time <= window[2] for each, time in counted_events)
            if has and window not in counts and window[2] >= close:
                counts[window] = has
    return counts


@settings(max_examples=depth.times(100))
@given(events, sizes, graces, st.booleans(), st.booleans())
def test_sliding_windows(
    events: list[Event], difference: int, grace: int, cached: bool, shrunk: bool
) -> None:
    windows = SlidingWindows(difference, grace=grace)
    events = without_half_late([(key, timestamp + difference) for key, timestamp in events], windows)
    assert counted(windows, events, caching=cached, shrunk=shrunk) == sliding(events, windows)


def told_when_closed(windows: Any, events: list[Event]) -> list[tuple[Any, int]]:
    """Return the results that are written when windows close, as `counted` does, sorted."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    closed = builder.stream("in").group_by_key().windowed_by(windows, emit_strategy="on_window_close")
    closed.count(store=Materialized(retention=2 * FOREVER)).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for key, timestamp in events:
            driver.input_topic("in").pipe_input(key, "", timestamp)
        output = driver.output_topic("out").read_key_values()
    return sorted(((key.key, *key.window), count) for key, count in output)


def closed(counts: dict[Any, int], until: int) -> list[tuple[Any, int]]:
    """Return the windows that end before a time, sorted."""
    return sorted(each for each in counts.items() if each[0][2] < until)


def latest(events: list[Event]) -> int:
    return max((timestamp for _, timestamp in events), default=-1)


# A window that closed is told once, with all it has.


@settings(max_examples=depth.times(50))
@given(events, sizes, st.integers(1, 10), graces)
def test_time_windows_that_closed(events: list[Event], size: int, advance: int, grace: int) -> None:
    windows = TimeWindows(size, advance=min(advance, size), grace=grace)
    until = latest(events) - grace + 1
    assert told_when_closed(windows, events) == closed(aligned(events, windows), until)


@settings(max_examples=depth.times(50))
@given(events, st.sampled_from([0, 1, 4, 10]), graces)
def test_sessions_that_closed(events: list[Event], gap: int, grace: int) -> None:
    windows = SessionWindows(gap, grace=grace)
    until = latest(events) - grace - gap
    assert told_when_closed(windows, events) == closed(sessions(events, windows), until)


@settings(max_examples=depth.times(50))
@given(events, sizes, graces)
def test_sliding_windows_that_closed(events: list[Event], difference: int, grace: int) -> None:
    windows = SlidingWindows(difference, grace=grace)
    events = without_half_late([(key, timestamp + difference) for key, timestamp in events], windows)
    assert told_when_closed(windows, events) == closed(sliding(events, windows), latest(events) - grace)
