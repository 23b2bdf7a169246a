"""Topics that are read twice: one source reads them, as in Kafka's StreamsBuilder.

What `describe` prints of such programs is held to Kafka's in test_describe, and random ones, with their
records, in the differential run.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from streams import SlidingWindows, StreamsBuilder, TopologyError, wallclock_timestamp
from streams.testing import TopologyTestDriver


@pytest.fixture
def builder() -> StreamsBuilder[str, str]:
    return StreamsBuilder(key_serde=str, value_serde=str)


def test_both_streams_get_every_record(builder: StreamsBuilder[str, str]) -> None:
    builder.stream(["t", "u"]).to("a")
    builder.stream(["u", "t"]).map_values(str.upper).to("b", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("t").pipe_input("k", "x", 1)
        driver.input_topic("u").pipe_input("k", "y", 2)
        assert driver.output_topic("a").read_key_values() == [("k", "x"), ("k", "y")]
        assert driver.output_topic("b").read_key_values() == [("k", "X"), ("k", "Y")]


def test_the_first_calls_serdes_and_extractor_count(builder: StreamsBuilder[str, str]) -> None:
    builder.stream("t", value_serde=int, timestamp_extractor=lambda k, v, t: v).to("a")
    builder.stream("t", timestamp_extractor=wallclock_timestamp).map_values(str).to("b", value_serde=str)
    with TopologyTestDriver(builder, start=3) as driver:
        driver.input_topic("t").pipe_input("k", 7, 1)
        (record,) = driver.output_topic("b").read_all()
        assert (record.value, record.timestamp) == ("7", 7)


def test_streams_of_two_calls_merge(builder: StreamsBuilder[str, str]) -> None:
    builder.stream("t").merge(builder.stream("t").map_values(str.upper)).to("out", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("t").pipe_input("k", "x", 1)
        assert driver.output_topic("out").read_key_values() == [("k", "X"), ("k", "x")]


Build = Callable[[StreamsBuilder[str, str]], object]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda b: (b.stream(["t", "u"]), b.stream("u")), "topic 'u' is read already, by KSTREAM-SOURCE-"),
        (lambda b: (b.stream("t"), b.table("t")), "topic 't' is read already"),
        (lambda b: (b.table("t"), b.stream("t")), "topic 't' is read already"),
        (lambda b: (b.table("t"), b.table("t")), "topic 't' is read already"),
        (lambda b: (b.stream("t"), b.global_table("t")), "topic 't' is read already"),
        (
            lambda b: (b.stream(re.compile("t.*")), b.stream("tt")),
            "'tt', read by .* also matches .*'t\\.\\*'",
        ),
        (lambda b: (b.stream("tt"), b.stream(re.compile("t.*"))), "'tt', read by .* also matches"),
        (lambda b: (b.stream(re.compile("t.*")), b.global_table("tt")), "'tt', read by .* also matches"),
        (
            lambda b: b.stream(re.compile(".*")).group_by(lambda k, v: v, name="g").count(),
            "'g-repartition', read by g-repartition-source, also matches",
        ),
        (lambda b: b.stream([]), "names no topic"),
        (lambda b: b.stream(re.compile(b"t")), "not by the pattern b't'"),
    ],
)
def test_topics_that_overlap_are_refused(build: Build, says: str, builder: StreamsBuilder[str, str]) -> None:
    with pytest.raises(TopologyError, match=says):
        build(builder)


@pytest.mark.parametrize("topics", ["t", re.compile("t.*")])
@pytest.mark.parametrize("resets", [("earliest", "latest"), ("earliest", None), (None, "latest")])
def test_two_resets_of_one_topic_are_refused(
    topics: str, resets: tuple[None, None], builder: StreamsBuilder[str, str]
) -> None:
    builder.stream(topics, reset=resets[0])
    with pytest.raises(TopologyError, match=f"reset={resets[1]!r}, and .* with reset={resets[0]!r}"):
        builder.stream(topics, reset=resets[1])
    builder.stream(topics, reset=resets[0])


def test_patterns_with_other_flags_are_others(builder: StreamsBuilder[str, str]) -> None:
    builder.stream(re.compile("t.*")).to("a")
    builder.stream(re.compile("t.*", re.IGNORECASE)).to("b")
    assert len(builder.build().subtopologies) == 2


def test_sliding_windows_of_one_moment(builder: StreamsBuilder[str, str]) -> None:
    """Kafka takes a difference of 0 and fails with the first record."""
    counts = builder.stream("t").group_by_key().windowed_by(SlidingWindows(0, grace=10)).count()
    counts.to_stream().map(lambda k, v: (f"{k.key}@{k.window.start}-{k.window.end}", str(v))).to(
        "out", key_serde=str, value_serde=str
    )
    with TopologyTestDriver(builder) as driver:
        for time in (0, 5, 5, 4, 5):
            driver.input_topic("t").pipe_input("k", "v", time)
        output = driver.output_topic("out").read_key_values()
    assert output == [("k@0-0", "1"), ("k@5-5", "1"), ("k@5-5", "2"), ("k@4-4", "1"), ("k@5-5", "3")]
