"""Duplicates: the first record of an id within a time goes on (KIP-655)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import Materialized, StreamsBuilder, TopologyError
from streams.serdes import MessagePack, String
from streams.serdes.key_and_id import KeyAndId
from streams.testing import TopologyTestDriver
from tests.support import depth

Event = tuple[str, int, int]
"""Key, id and timestamp."""


def unique(events: list[Event], *, shrunk: bool = False, **options: Any) -> list[tuple[Any, Any]]:
    """Return the forwarded records. ``shrunk``: nothing stays in memory from one record to the next."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").deduplicate(store="seen", **options).to("out")
    with TopologyTestDriver(builder) as driver:
        for key, id, timestamp in events:
            driver.input_topic("in").pipe_input(key, id, timestamp)
            if shrunk:
                driver.store("seen").shrink()
        return [(each.key, (each.value, each.timestamp)) for each in driver.output_topic("out").read_all()]


def test_the_first_of_an_id_goes_on_until_the_time_is_over() -> None:
    events = [("a", 1, 100), ("a", 1, 110), ("a", 2, 105), ("b", 1, 110), ("a", 1, 111), ("a", 1, 121)]
    assert unique(events, key=lambda id: id, within=10) == [
        ("a", (1, 100)),
        ("a", (2, 105)),
        ("b", (1, 110)),
        ("a", (1, 111)),  # The one at 110 did not go on, so it does not count.
    ]


def test_without_a_selector_the_key_is_the_id() -> None:
    assert unique([("a", 1, 0), ("a", 2, 5), ("b", 2, 5)], within=10) == [("a", (1, 0)), ("b", (2, 5))]


def test_out_of_order_and_late_records_as_the_kip_says() -> None:
    a, b = ("a", 1), ("b", 1)
    events = [(*a, 20), (*a, 12), (*a, 9), (*b, 40), (*b, 25), (*a, 25)]
    # The one at 9 is further from 20 than the interval; those at 25 are late, and nothing is known of them.
    assert unique(events, within=10) == [
        ("a", (1, 20)),
        ("a", (1, 9)),
        ("b", (1, 40)),
        ("b", (1, 25)),
        ("a", (1, 25)),
    ]
    assert unique([(*a, 10), (*b, 20), (*a, 9)], within=10) == [("a", (1, 10)), ("b", (1, 20))]
    assert unique([(*a, 10), (*b, 21), (*a, 9)], within=10)[-1] == ("a", (1, 9)), (
        "what it repeats is forgotten"
    )
    assert unique([(*a, 10), (*b, 21), (*a, 9)], within=10, grace=1) == [("a", (1, 10)), ("b", (1, 21))]


def test_records_without_key_or_id_go_on() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").deduplicate(lambda value: value or None, within=10).to("out")
    with TopologyTestDriver(builder) as driver:
        rows: list[tuple[Any, Any]] = [(None, "x"), (None, "x"), ("a", ""), ("a", ""), ("a", "x"), ("a", "x")]
        driver.input_topic("in").pipe_all(rows)
        assert driver.output_topic("out").read_key_values() == rows[:-1]


def test_keys_that_may_have_changed_go_through_a_topic_those_without_too() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream("in").select_key(lambda key, value: value or None)
    rekeyed.deduplicate(within=10, name="once").to("out", key_serde=str)
    with TopologyTestDriver(builder) as driver:
        assert driver.topology.repartition_topics == ["once-repartition"]
        driver.input_topic("in").pipe_all([("1", "a"), ("2", "a"), ("3", ""), ("4", "")])
        assert driver.output_topic("out").read_key_values() == [("a", "a"), (None, ""), (None, "")]


def model(events: list[Event], within: int, grace: int) -> list[tuple[Any, Any]]:
    """Return the records that are forwarded, by comparing each record with all of those before."""
    forwarded: list[Event] = []
    stream_time = -1
    for event in events:
        stream_time = max(stream_time, event[2])
        remembered = [each for each in forwarded if each[2] >= stream_time - within - grace]
        if not any(each[:2] == event[:2] and abs(each[2] - event[2]) <= within for each in remembered):
            forwarded.append(event)
    return [(key, (id, timestamp)) for key, id, timestamp in forwarded]


events = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 60)), max_size=40)


@settings(max_examples=depth.times(100))
@given(events, st.integers(1, 20), st.sampled_from([0, 5, 100]), st.booleans())
def test_agrees_with_a_model(events: list[Event], within: int, grace: int, shrunk: bool) -> None:
    output = unique(events, shrunk=shrunk, key=lambda key, id: id, within=within, grace=grace)
    assert output == model(events, within, grace)


def test_state_is_bounded_by_stream_time() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").deduplicate(within=60_000, store="seen").to("out")
    with TopologyTestDriver(builder) as driver:
        for number in range(100):
            driver.input_topic("in").pipe_input(str(number), number, number * 10_000)
        assert len(driver.store("seen").scan()) < 20
        assert len(driver.take("seen-changelog")) == 100, "nothing is said of what expired"


def test_names_and_options() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").deduplicate(within=5).to("out")
    assert (
        "Processor: KSTREAM-DEDUPLICATE-0000000002 (stores: [KSTREAM-DEDUPLICATE-STATE-STORE-0000000001])"
        in (builder.build().describe())
    )
    stream = StreamsBuilder(key_serde=str, value_serde=str).stream("in")
    with pytest.raises(TopologyError, match="within is 0, it must be longer than 0"):
        stream.deduplicate(within=0)
    with pytest.raises(TopologyError, match="grace is -1, it must not be negative"):
        stream.deduplicate(within=1, grace=-1)
    with pytest.raises(TopologyError, match="retention is 5 ms, it must be at least 11 ms"):
        stream.deduplicate(within=10, store=Materialized(name="seen", retention=5))


def test_keys_and_ids_are_read_as_they_were_written() -> None:
    serde = KeyAndId(String(), MessagePack(Any))
    for pair in (("", 1), ("key", "id"), ("key", ["a", 2])):
        assert serde.deserialize(serde.serialize(pair)) == pair
    with pytest.raises(ValueError, match="a key of 99 bytes where 2 are left"):
        serde.deserialize(b"\x00\x00\x00\x63ab")
