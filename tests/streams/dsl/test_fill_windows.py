"""Windows between two of a key in which it has nothing are put in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import SessionWindows, StreamsBuilder, TimeWindows, TopologyError
from streams.serdes import Long
from streams.serdes.window_start_value import StartAndValue
from streams.testing import TopologyTestDriver
from tests.support import depth

IDLE = 1_000
Event = tuple[str, int]
"""Key and timestamp."""


def filled(events: list[Event], windows: TimeWindows, value: int | None = None, **options: Any) -> list[Any]:
    """Key, start, count and timestamp of what goes on, once all windows are closed."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    windowed = builder.stream("in").group_by_key().windowed_by(windows)
    counts = windowed.emit_strategy("on_window_close", idle_timeout=IDLE).count()
    counts.to_stream().fill_windows(value, store="last", **options).to("out")
    with TopologyTestDriver(builder) as driver:
        for key, timestamp in events:
            driver.input_topic("in").pipe_input(key, "", timestamp)
        driver.advance_wall_clock(IDLE)
        records = driver.output_topic("out").read_all()
    return [(each.key.key, each.key.window.start, each.value, each.timestamp) for each in records]


def test_gaps_are_filled_with_the_value_before_or_a_constant() -> None:
    events = [("a", 3), ("a", 4), ("a", 35)]
    assert filled(events, TimeWindows(10), limit=9) == [
        ("a", 0, 2, 4),
        ("a", 10, 2, 19),
        ("a", 20, 2, 29),
        ("a", 30, 1, 35),
    ]
    assert [count for _, _, count, _ in filled(events, TimeWindows(10), 0, limit=9)] == [2, 0, 0, 1]
    assert [start for _, start, _, _ in filled(events, TimeWindows(10), limit=1)] == [0, 10, 30]


def test_windows_that_overlap_say_how_far_apart_they_are() -> None:
    events = [("a", 10), ("a", 30)]
    starts = [start for _, start, _, _ in filled(events, TimeWindows(10, advance=5), limit=9, advance=5)]
    assert starts == [5, 10, 15, 20, 25, 30]


def model(events: list[Event], size: int, limit: int) -> list[Any]:
    """Counts by window, reindexed from each key's first window to its last, and filled as pandas does."""
    output = []
    for key in {key for key, _ in events}:
        starts = [time - time % size for each, time in events if each == key]
        count, missing = 0, 0
        for start in range(min(starts), max(starts) + 1, size):
            missing = 0 if start in starts else missing + 1
            count = starts.count(start) or count
            if missing <= limit:
                output.append((key, start, count))
    return sorted(output)


events = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 80)), max_size=20)


@settings(max_examples=depth.times(60))
@given(events, st.sampled_from([1, 4, 10]), st.integers(1, 9))
def test_agrees_with_a_model(events: list[Event], size: int, limit: int) -> None:
    output = filled(events, TimeWindows(size, grace=100), limit=limit)
    assert sorted(each[:3] for each in output) == model(events, size, limit)
    for key in "ab":
        starts = [each[1] for each in output if each[0] == key]
        assert starts == sorted(starts), "a gap is filled before the window that ends it"


def test_what_makes_no_sense_is_refused() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    grouped = builder.stream("in").group_by_key()
    counts = grouped.windowed_by(TimeWindows(10)).count().to_stream()
    with pytest.raises(TopologyError, match="limit is 0, it must be 1 or more"):
        counts.fill_windows(limit=0)
    with pytest.raises(TopologyError, match="advance is 0, it must be longer than 0"):
        counts.fill_windows(limit=1, advance=0)
    sessions: Any = grouped.windowed_by(SessionWindows(10)).count().to_stream()
    records: Any = builder.stream("others")
    for other in (sessions, records):
        with pytest.raises(TopologyError, match="it is for a table of windows as a stream, with its keys"):
            other.fill_windows(limit=1)
    with pytest.raises(ValueError, match="a window's start takes 8 bytes, and there are 2"):
        StartAndValue(Long()).deserialize(b"ab")
