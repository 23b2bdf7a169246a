"""What windows hold in the end, against models that know nothing of how it came about; and that it does not
depend on what is in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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


def counted(windows: Any, given: list[Event], *, shrunk: bool = False, **kept: Any) -> dict[Any, int]:
    """The counts in the store, by key, start and end, when all is processed.

    ``shrunk``: nothing stays in memory from one record to the next.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    store = Materialized(name="store", retention=2 * FOREVER, **kept)
    builder.stream("in").group_by_key().windowed_by(windows).count(store=store).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for key, timestamp in given:
            driver.input_topic("in").pipe_input(key, "", timestamp)
            if shrunk:
                driver.store("store").shrink()
        found: dict[Windowed[str], int] = dict(driver.store("store").all())  # type: ignore[attr-defined]
        told = driver.output_topic("out").read_table()
    assert told == found, "what downstream knows is what the store has"
    return {(key.key, *key.window): count for key, count in found.items()}


def on_time(given: list[Event], windows: TimeWindows) -> Iterator[tuple[str, int]]:
    """Key and start of each window that each record counts in."""
    stream_time = -1
    for key, timestamp in given:
        stream_time = max(stream_time, timestamp)
        for start in range(timestamp + 1):
            end = start + windows.size_ms
            if start % windows.advance_ms == 0 and timestamp < end and end > stream_time - windows.grace_ms:
                yield key, start


@settings(max_examples=depth.times(100))
@given(events, sizes, st.integers(1, 10), st.sampled_from([0, 3, 20]), st.booleans())
def test_time_windows(given: list[Event], size: int, advance: int, grace: int, cached: bool) -> None:
    windows = TimeWindows(size, advance=min(advance, size), grace=grace)
    expected: dict[Any, int] = {}
    for key, start in on_time(given, windows):
        window = (key, start, start + size)
        expected[window] = expected.get(window, 0) + 1
    assert counted(windows, given, caching=cached) == expected


def sessions(given: list[Event], gap: int) -> dict[Any, int]:
    """Records in order of time, divided where the gap is too long."""
    found: dict[Any, int] = {}
    for key in {key for key, _ in given}:
        times = sorted(timestamp for each, timestamp in given if each == key)
        cuts = [0, *(n for n in range(1, len(times)) if times[n] - times[n - 1] > gap), len(times)]
        for first, last in itertools.pairwise(cuts):
            found[key, times[first], times[last - 1]] = last - first
    return found


@settings(max_examples=depth.times(100))
@given(events, st.sampled_from([0, 1, 4, 10]), st.booleans(), st.booleans())
def test_sessions(given: list[Event], gap: int, cached: bool, shrunk: bool) -> None:
    windows = SessionWindows(gap, grace=FOREVER)
    assert counted(windows, given, caching=cached, shrunk=shrunk) == sessions(given, gap)


def sliding(given: list[Event], difference: int) -> dict[Any, int]:
    """All windows that end with a record, or begin right behind one, and have records."""
    found: dict[Any, int] = {}
    for key, timestamp in given:
        for start in (timestamp - difference, timestamp + 1):
            window = (key, start, start + difference)
            if count := sum(each == key and start <= time <= window[2] for each, time in given):
                found[window] = count
    return found


@settings(max_examples=depth.times(100))
@given(events, sizes, st.booleans(), st.booleans())
def test_sliding_windows(given: list[Event], difference: int, cached: bool, shrunk: bool) -> None:
    given = [(key, timestamp + difference) for key, timestamp in given]
    windows = SlidingWindows(difference, grace=FOREVER)
    assert counted(windows, given, caching=cached, shrunk=shrunk) == sliding(given, difference)


@settings(max_examples=depth.times(50))
@given(events, sizes, st.sampled_from([0, 3, 20]))
def test_a_window_that_closed_is_told_once_with_all_it_has(given: list[Event], size: int, grace: int) -> None:
    windows = TimeWindows(size, grace=grace)
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    closed = builder.stream("in").group_by_key().windowed_by(windows, emit_strategy="on_window_close")
    closed.count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for key, timestamp in given:
            driver.input_topic("in").pipe_input(key, "", timestamp)
        told = driver.output_topic("out").read_key_values()
    stream_time = max((timestamp for _, timestamp in given), default=-1)
    counts = list(on_time(given, windows))
    assert sorted(((key.key, key.window.start), count) for key, count in told) == sorted(
        (window, counts.count(window)) for window in set(counts) if window[1] + size <= stream_time - grace
    )
