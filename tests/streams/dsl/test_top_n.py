"""The N greatest and smallest values of a key, by window too, and of tables that take rows back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import Materialized, SessionWindows, StreamsBuilder, TimeWindows, TopologyError
from streams.testing import TopologyTestDriver
from tests.support import depth

Row = tuple[int, str]
"""Rank, and a name to tell equals apart."""
Event = tuple[str, int, int]
"""Key, rank and timestamp; its place in the list is its name."""


def rank(row: list[Any]) -> int:
    score: int = row[0]
    return score


def ranked(rows: list[Any], n: int, *, smallest: bool) -> list[Any]:
    """Sorting is stable: of equals the first stays first."""
    return sorted(rows, key=lambda row: row[0] if smallest else -row[0])[:n]


def best(events: list[Event], windows: Any, n: int, *, smallest: bool, cached: bool) -> dict[Any, Any]:
    builder = StreamsBuilder(key_serde=str, value_serde=list)
    grouped: Any = builder.stream("in").group_by_key()
    grouped = grouped if windows is None else grouped.windowed_by(windows)
    pick = grouped.bottom_n if smallest else grouped.top_n
    table = pick(n, by=rank, store=Materialized(name="top", caching=cached))
    table.to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for number, (key, score, timestamp) in enumerate(events):
            driver.input_topic("in").pipe_input(key, [score, str(number)], timestamp)
        output = driver.output_topic("out").read_table()
        stored: Any = driver.store("top")
        assert dict(stored.all()) == output
    return output


events = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 60)), max_size=30)


@settings(max_examples=depth.times(60))
@given(events, st.integers(1, 4), st.booleans(), st.booleans(), st.booleans())
def test_of_streams_and_windows(
    events: list[Event], n: int, smallest: bool, cached: bool, windowed: bool
) -> None:
    windows = TimeWindows(10, grace=1000) if windowed else None
    rows: dict[Any, list[Any]] = {}
    for number, (key, score, timestamp) in enumerate(events):
        group = (key, timestamp - timestamp % 10) if windowed else key
        rows.setdefault(group, []).append([score, str(number)])
    expected = {group: ranked(each, n, smallest=smallest) for group, each in rows.items()}
    output = best(events, windows, n, smallest=smallest, cached=cached)
    if windowed:
        output = {(key.key, key.window.start): each for key, each in output.items()}
    assert output == expected


@settings(max_examples=depth.times(60))
@given(events, st.integers(1, 4))
def test_of_sessions(events: list[Event], n: int) -> None:
    """Sessions have the scores of the best rows; which of equal rows comes first depends on how sessions
    merged.
    """
    output = best(events, SessionWindows(5, grace=1000), n, smallest=False, cached=True)
    for windowed, rows in output.items():
        start, end = windowed.window
        scores = [s for key, s, time in events if key == windowed.key and start <= time <= end]
        assert [row[0] for row in rows] == sorted(scores, reverse=True)[:n]
    assert sum(len(rows) for rows in output.values()) <= len(events)


updates = st.lists(
    st.tuples(st.sampled_from("pqrst"), st.none() | st.tuples(st.sampled_from("ab"), st.integers(0, 3))),
    max_size=30,
)


@settings(max_examples=depth.times(60))
@given(updates, st.integers(1, 3), st.booleans())
def test_of_tables(events: list[tuple[str, Any]], n: int, smallest: bool) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=list)
    grouped = builder.table("in").group_by(lambda key, row: (row[1], row))
    pick = grouped.bottom_n if smallest else grouped.top_n
    pick(n, by=rank, store="all").to_stream().to("out", key_serde=str)
    rows: dict[str, Any] = {}
    with TopologyTestDriver(builder) as driver:
        for key, update in events:
            row = None if update is None else [update[1], update[0], key]
            driver.input_topic("in").pipe_input(key, row)
            # A row that stays in its group as it is keeps nothing: it is taken back and added.
            rows.pop(key, None)
            if row is not None:
                rows[key] = row
        output = driver.output_topic("out").read_table()
    groups = {row[1] for row in rows.values()}
    assert output == {
        group: ranked([row for row in rows.values() if row[1] == group], n, smallest=smallest)
        for group in groups
    }


def test_values_that_rank_by_themselves_and_nulls() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows(10))
    windowed.top_n(2, store="top").to_stream(lambda key, rows: key.key).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 3), ("a", None), ("b", None), ("a", 9), ("a", 4)])
        assert driver.output_topic("out").read_table() == {"a": [9, 4]}


def test_names_and_options() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").group_by_key().top_n(2, name="best", store="top")
    builder.table("rows").group_by(lambda key, value: (key, value)).top_n(2, name="rows", store="all")
    described = builder.build().describe()
    assert "Processor: best (stores: [top])" in described
    assert "Processor: rows (stores: [all])\n      --> rows-first" in described
    grouped = StreamsBuilder(key_serde=str).stream("in", value_serde=int).group_by_key()
    with pytest.raises(TopologyError, match="of 1 value or more, not 0"):
        grouped.bottom_n(0)
