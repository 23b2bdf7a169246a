"""Fields of values that are dicts; and the interval join, which is a windowed join by another name."""

from __future__ import annotations

from typing import Any

import pytest

from streams import JoinWindows, StreamsBuilder, TopologyError
from streams.errors import ProcessingError
from streams.testing import TopologyTestDriver


def through(change: Any, *values: Any) -> list[Any]:
    builder = StreamsBuilder(key_serde=str, value_serde=Any)
    change(builder.stream("in")).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("k", value) for value in values])
        return [value for _, value in driver.output_topic("out").read_key_values()]


def test_fill_gives_missing_fields_their_default() -> None:
    values = [{"a": 1}, {"a": None, "b": 0}, {}, None]
    assert through(lambda stream: stream.fill({"a": 7, "b": []}), *values) == [
        {"a": 1, "b": []},
        {"a": 7, "b": 0},
        {"a": 7, "b": []},
        None,
    ]


def test_a_default_is_not_shared_and_the_value_not_changed() -> None:
    def grow(value: dict[str, Any]) -> dict[str, Any]:
        value["list"].append(1)
        return value

    assert through(lambda s: s.fill({"list": []}).map_values(grow), {}, {}) == [{"list": [1]}] * 2
    assert through(lambda s: s.merge(s.fill({"a": 1})), {}) == [{"a": 1}, {}]


def test_drop_leaves_fields_out() -> None:
    assert through(lambda stream: stream.drop("a", "b"), {"a": 1, "b": 2, "c": 3}, None) == [{"c": 3}, None]
    assert through(lambda stream: stream.drop("a", errors="ignore"), {"c": 3}) == [{"c": 3}]
    with pytest.raises(ProcessingError) as raised:
        through(lambda stream: stream.drop("a", name="without"), {"c": 3})
    assert "no field 'a' among ['c']" in str(raised.value.__cause__)
    with pytest.raises(TopologyError, match="errors is 'skip', it may be 'raise' or 'ignore'"):
        through(lambda stream: stream.drop("a", errors="skip"))


def test_other_values_have_no_fields() -> None:
    with pytest.raises(ProcessingError) as raised:
        through(lambda stream: stream.fill({"a": 1}), 5)
    assert (
        str(raised.value.__cause__) == "fill() is for values that are dicts, not for a int: use map_values()"
    )


def test_an_interval_join_is_a_windowed_join() -> None:
    def topology(join: Any) -> StreamsBuilder:
        builder = StreamsBuilder(key_serde=str, value_serde=str)
        join(builder.stream("left"), builder.stream("right")).to("out", value_serde=str)
        return builder

    def add(one: str, other: str) -> str:
        return one + other

    builder = topology(lambda left, right: left.interval_join(right, add, before=2, after=5, grace=3))
    windows = JoinWindows(before=2, after=5, grace=3)
    windowed = topology(lambda left, right: left.join(right, add, windows=windows))
    assert builder.build().describe() == windowed.build().describe()
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("left").pipe_input("k", "l", 10)
        for time in (7, 8, 15, 16):
            driver.input_topic("right").pipe_input("k", str(time), time)
        assert driver.output_topic("out").read_key_values() == [("k", "l8"), ("k", "l15")]
    with pytest.raises(TopologyError, match="an interval join is with a KStream, not with a KTable"):
        topology(lambda left, right: left.interval_join(right.to_table(), add, after=1))
