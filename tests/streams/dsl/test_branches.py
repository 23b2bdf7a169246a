"""Streams split by predicates: `KStream.split`. Their names are Kafka's in test_describe.py."""

from __future__ import annotations

from typing import Any

import pytest

from streams import KStream, StreamsBuilder, TopologyError
from streams.testing import TopologyTestDriver


def split(*, default: bool) -> StreamsBuilder:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    branches = builder.stream("in").split(name="by-")
    branches.branch(lambda key, value: value < 0, name="negative")
    branches.branch(lambda key, value: value < 10, name="small")
    branches_by_name = branches.default_branch(name="rest") if default else branches.no_default_branch()
    for name, stream in branches_by_name.items():
        stream.to(name)
    return builder


def test_a_record_goes_to_the_first_branch_that_takes_it() -> None:
    with TopologyTestDriver(split(default=True)) as driver:
        driver.input_topic("in").pipe_all([("a", -1), ("b", 5), ("c", 50), ("d", -7)])
        out = {
            name: driver.output_topic(name).read_key_values()
            for name in ("by-negative", "by-small", "by-rest")
        }
    assert out == {"by-negative": [("a", -1), ("d", -7)], "by-small": [("b", 5)], "by-rest": [("c", 50)]}


def test_without_a_default_branch_the_rest_is_left_out() -> None:
    with TopologyTestDriver(split(default=False)) as driver:
        driver.input_topic("in").pipe_all([("b", 5), ("c", 50)])
        assert driver.output_topic("by-small").read_key_values() == [("b", 5)]
        with pytest.raises(KeyError):
            driver.output_topic("by-rest")


def test_chains_and_consumers_decide_what_is_returned() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    consumed: list[KStream[Any, Any]] = []
    branches = builder.stream("in").split(name="b-")
    branches.branch(lambda k, v: v == 1, name="taken", consumer=consumed.append)
    branches.branch(
        lambda k, v: v == 2, name="chained", chain=lambda stream: stream.map_values(lambda v: v * 10)
    )
    branches.branch(lambda k, v: v == 3, name="gone", chain=lambda stream: None)
    branches_by_name = branches.no_default_branch()
    assert list(branches_by_name) == ["b-chained"] and len(consumed) == 1
    branches_by_name["b-chained"].to("out", value_serde=int)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("b", 2)])
        assert driver.output_topic("out").read_key_values() == [("b", 20)]


def test_the_default_branch_comes_last_and_once() -> None:
    stream = StreamsBuilder(key_serde=str, value_serde=int).stream("in")
    branches = stream.split()
    branches.default_branch()
    with pytest.raises(
        TopologyError, match=r"KSTREAM-BRANCH-0000000001: default_branch\(\) and .* come last"
    ):
        branches.branch(lambda k, v: True)
    with pytest.raises(TopologyError, match="come last"):
        branches.default_branch()


def test_misuse_is_named() -> None:
    branches = StreamsBuilder(key_serde=str, value_serde=int).stream("in").split()
    with pytest.raises(TopologyError, match=r"takes a predicate of \(key, value\), not 7"):
        branches.branch(7)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="a chain or a consumer, not both"):
        branches.branch(lambda k, v: True, chain=lambda s: s, consumer=print)
