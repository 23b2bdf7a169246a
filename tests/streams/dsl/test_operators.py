"""Operators through `TopologyTestDriver`: what comes out, with which timestamp, and what is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streams import (
    KStream,
    Materialized,
    Processor,
    Record,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    Window,
    Windowed,
)
from streams.testing import TopologyTestDriver

Build = Callable[[KStream[str, Any]], KStream[Any, Any]]


class Silent(Processor[Any, Any]):
    """A processor, for those who give one where one should be made."""

    def process(self, record: Record[Any, Any]) -> None:
        pass


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder(key_serde=str, value_serde=int)


def run(build: Build, records: list[tuple[Any, Any]], **output: Any) -> list[tuple[Any, Any]]:
    """Return the records that a stream operator forwards."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    build(builder.stream("in")).to("out", **output)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all(records)
        return driver.output_topic("out").read_key_values()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda s: s.filter(lambda k, v: v > 1), [("b", 2), ("c", 3)]),
        (lambda s: s.filter_not(lambda k, v: v > 1), [("a", 1)]),
        (lambda s: s.map(lambda k, v: (k * 2, v * 2)), [("aa", 2), ("bb", 4), ("cc", 6)]),
        (lambda s: s.map_values(lambda v: -v), [("a", -1), ("b", -2), ("c", -3)]),
        (lambda s: s.flat_map(lambda k, v: [(k, v)] * (v - 1)), [("b", 2), ("c", 3), ("c", 3)]),
        (lambda s: s.flat_map_values(range), [("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 2)]),
        (lambda s: s.select_key(lambda k, v: str(v)), [("1", 1), ("2", 2), ("3", 3)]),
        (lambda s: s.merge(s), [("a", 1), ("b", 2), ("c", 3)]),
    ],
)
def test_stateless(build: Build, expected: list[tuple[Any, Any]]) -> None:
    assert run(build, [("a", 1), ("b", 2), ("c", 3)]) == expected


def test_peek_and_foreach_see_records(builder: StreamsBuilder) -> None:
    records: list[Any] = []
    stream = builder.stream("in").peek(lambda k, v: records.append(("peek", k, v)))
    stream.foreach(lambda k, v: records.append(("foreach", k, v)))
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("a", 1)
    assert records == [("peek", "a", 1), ("foreach", "a", 1)]


def test_timestamps_and_headers_pass_through(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: v + 1).to("out")
    with TopologyTestDriver(builder, start=5) as driver:
        topic = driver.input_topic("in")
        topic.pipe_input("a", 1, 77, (("h", b"x"),))
        topic.pipe_input("a", 1)
        first, second = driver.output_topic("out").read_all()
    assert (first.timestamp, first.headers, first.value) == (77, (("h", b"x"),), 2)
    assert second.timestamp == 5


def test_timestamp_extractor_gives_event_time(builder: StreamsBuilder) -> None:
    builder.stream("in", timestamp_extractor=lambda key, value, timestamp: timestamp + value).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("a", 10, 100)
        assert driver.output_topic("out").read_output().timestamp == 110


# -- tables


@pytest.fixture(params=[True, False], ids=["cached", "uncached"])
def storage(request: pytest.FixtureRequest) -> Iterator[Materialized]:
    return Materialized(name="kept", caching=request.param)


def test_count_reduce_aggregate(builder: StreamsBuilder, storage: Materialized) -> None:
    grouped = builder.stream("in").group_by_key()
    grouped.count(store=storage).to_stream().to("counts")
    grouped.reduce(max, store="most").to_stream().to("most")
    add = lambda key, value, total: [*total, value]  # noqa: E731
    grouped.aggregate(list, add, value_serde=list).to_stream().to("lists")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("b", 5), ("a", 3), (None, 1), ("b", None), ("a", 2)])
        assert driver.output_topic("counts").read_key_values() == [("a", 1), ("b", 1), ("a", 2), ("a", 3)]
        assert driver.output_topic("most").read_table() == {"a": 3, "b": 5}
        assert driver.output_topic("lists").read_table() == {"a": [1, 3, 2], "b": [5]}
        assert driver.key_value_store("kept").get("a") == 3
        assert driver.metrics()["KSTREAM-AGGREGATE-0000000001"].dropped_records_total == 2


def test_result_timestamp_is_the_highest(builder: StreamsBuilder, storage: Materialized) -> None:
    builder.stream("in").group_by_key().count(store=storage).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for timestamp in (10, 30, 20):
            driver.input_topic("in").pipe_input("a", 1, timestamp)
        assert [record.timestamp for record in driver.output_topic("out").read_all()] == [10, 30, 30]


def test_an_aggregator_that_returns_none_deletes(builder: StreamsBuilder, storage: Materialized) -> None:
    def add(key: str, value: int, total: int) -> int | None:
        return total + value or None

    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(lambda: 0, add, value_serde=int, store=storage).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", -1), ("a", 4)])
        assert driver.output_topic("out").read_key_values() == [("a", 1), ("a", None), ("a", 4)]


def test_table_operators(builder: StreamsBuilder) -> None:
    table = builder.table("in", store="t")
    table.filter(lambda k, v: v > 1).map_values(lambda v: v * 10).to_stream().to("big")
    table.filter_not(lambda k, v: v > 1).to_stream().to("small")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 2), ("a", None), (None, 3)])
        assert driver.output_topic("big").read_key_values() == [("a", 20), ("a", None)]
        assert driver.output_topic("small").read_key_values() == [("a", 1), ("a", None)]
        assert list(driver.key_value_store("t").all()) == []


def test_to_table_after_a_new_key_is_repartitioned(builder: StreamsBuilder) -> None:
    table = builder.stream("in").select_key(lambda k, v: k[0]).to_table(store="t")
    table.to_stream(key=lambda k, v: k + "!").to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a1", 1), ("a2", 2), ("b1", 3)])
        assert dict(driver.key_value_store("t").all()) == {"a": 2, "b": 3}
        assert driver.output_topic("out").read_key_values() == [("a!", 1), ("a!", 2), ("b!", 3)]


# -- joins


def test_join_and_left_join(builder: StreamsBuilder) -> None:
    table = builder.table("names", value_serde=str)
    stream = builder.stream("in")
    stream.join(table, lambda v, name: f"{name}{v}", name="inner").to("inner-out", value_serde=str)
    stream.left_join(table, lambda v, name: f"{name}{v}", name="left").to("left-out", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        names, numbers = driver.input_topic("names"), driver.input_topic("in")
        numbers.pipe_input("a", 1, 50)
        names.pipe_input("a", "Ann", 99)
        numbers.pipe_all([("a", 2), (None, 3), ("a", None)], start=60)
        names.pipe_input("a", None)
        numbers.pipe_input("a", 4)
        inner, left = driver.output_topic("inner-out").read_all(), driver.output_topic("left-out").read_all()
        assert [(r.key, r.value, r.timestamp) for r in inner] == [("a", "Ann2", 60)]
        assert [r.value for r in left] == ["None1", "Ann2", "None3", "None4"]
        assert driver.metrics()["inner"].dropped_records_total == 2
        assert driver.metrics()["left"].dropped_records_total == 1


def test_left_join_keeps_null_keys_behind_a_repartition_topic(builder: StreamsBuilder) -> None:
    """A left join keeps records with null keys, as Kafka since KIP-962; an inner join drops them before the
    topic.
    """
    table = builder.table("names", value_serde=str)
    stream = builder.stream("in").select_key(lambda key, value: None if value == 3 else key)
    stream.join(table, lambda v, name: f"{name}{v}", name="inner").to("inner-out", value_serde=str)
    stream.left_join(table, lambda v, name: f"{name}{v}", name="left").to("left-out", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("names").pipe_input("a", "Ann")
        driver.input_topic("in").pipe_all([("a", 2), ("a", 3)])
        assert driver.output_topic("inner-out").read_key_values() == [("a", "Ann2")]
        assert driver.output_topic("left-out").read_key_values() == [("a", "Ann2"), (None, "None3")]
        assert driver.metrics()["inner-repartition-filter"].dropped_records_total == 1


def test_join_with_a_derived_table(builder: StreamsBuilder) -> None:
    table = builder.table("t").filter(lambda k, v: v > 10).map_values(lambda v: v * 2)
    builder.stream("in").join(table, lambda v, w: v + w).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("t").pipe_all([("a", 5), ("b", 20)])
        driver.input_topic("in").pipe_all([("a", 1), ("b", 1)])
        assert driver.output_topic("out").read_key_values() == [("b", 41)]


def test_join_with_an_aggregate_in_the_same_task(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    counts = stream.group_by_key().count()
    builder.stream("other").join(counts, lambda v, count: count).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 1)])
        driver.input_topic("other").pipe_input("a", 0)
        assert driver.output_topic("out").read_key_values() == [("a", 2)]


# -- windows


def test_tumbling_windows_are_aligned_to_the_epoch(builder: StreamsBuilder) -> None:
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows(10, grace=100))
    windows.count(store="w").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.input_topic("in")
        for timestamp in (0, 9, 10, 19, 25, 5):
            topic.pipe_input("a", 1, timestamp)
        counts = driver.output_topic("out").read_table()
        assert counts == {
            Windowed("a", Window(0, 10)): 3,
            Windowed("a", Window(10, 20)): 2,
            Windowed("a", Window(20, 30)): 1,
        }
        store = driver.window_store("w")
        assert store.get("a", 10) == 2
        assert list(store.fetch("a", 5, 20)) == [(Window(10, 20), 2), (Window(20, 30), 1)]
        assert dict(store.all()) == counts


@pytest.mark.parametrize(("timestamp", "counted"), [(0, False), (9, False), (10, True), (19, True)])
def test_late_records_are_dropped_and_counted(builder: StreamsBuilder, timestamp: int, counted: bool) -> None:
    """Taken iff window end > stream time − grace: at 25 with grace 10, [10, 20) is open, [0, 10) not."""
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows(10, grace=10))
    windows.count(name="counter").to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("a", 1, 25)
        driver.input_topic("in").pipe_input("b", 1, timestamp)
        assert len(driver.output_topic("out").read_all()) == 1 + counted
        assert driver.metrics()["counter"].late_records_total == (not counted)


def test_windows_expire_by_stream_time(builder: StreamsBuilder) -> None:
    minute = 60_000
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows(minute))
    windows.reduce(max, store=Materialized(name="w", retention=2 * minute)).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        for number in range(10):
            driver.input_topic("in").pipe_input("a", number, number * minute)
        store = driver.window_store("w")
        assert [window.start // minute for window, _ in store.fetch("a", 0, 10 * minute)] == [8, 9]
        assert store.get("a", 7 * minute) is None
        assert len(store.scan()) <= 4, "what is past retention is deleted, in steps of a segment"


def test_aggregates_may_be_changed_in_place(builder: StreamsBuilder) -> None:
    def add(key: str, value: int, total: dict[str, int]) -> dict[str, int]:
        total["sum"] = total.get("sum", 0) + value
        return total

    store = Materialized(name="s", caching=False)
    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(dict, add, value_serde=dict, store=store).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 2)])
        assert driver.output_topic("out").read_key_values() == [("a", {"sum": 1}), ("a", {"sum": 3})]


# -- what cannot be built


def test_unknown_serdes_are_named() -> None:
    with pytest.raises(TopologyError, match=r"KSTREAM-SINK-0000000002 needs a key serde"):
        StreamsBuilder().stream("in", key_serde=str, value_serde=str).map(lambda k, v: (k, v)).to("out")


def test_retention_shorter_than_window_and_grace(builder: StreamsBuilder) -> None:
    windows = builder.stream("in").group_by_key().windowed_by(TimeWindows(10, grace=10))
    with pytest.raises(TopologyError, match="need at least 20 ms"):
        windows.count(store=Materialized(retention=19))


def test_a_topic_is_read_once(builder: StreamsBuilder) -> None:
    builder.stream("in")
    with pytest.raises(TopologyError, match="read already, by KSTREAM-SOURCE-0000000000"):
        builder.table("in")


def test_names_are_unique(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").filter(lambda k, v: True, name="same")
    with pytest.raises(TopologyError, match="'same'"):
        stream.peek(print, name="same")
    stream.group_by_key().count(store="s")
    with pytest.raises(TopologyError, match="'s'"):
        stream.group_by_key().count(store="s")


def test_a_topology_reads_something(builder: StreamsBuilder) -> None:
    with pytest.raises(TopologyError, match="reads no topic"):
        builder.build()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda b: b.stream("in").group_by_key().count(store="my store"), 'Name "my store" is illegal'),
        (lambda b: b.stream("in").group_by(lambda k, v: k, name="a/b").count(store="c"), 'Name "a/b" is'),
        (lambda b: b.stream("in", reset="earlist"), "reset is 'earlist', it may be earliest or latest"),
        (lambda b: b.stream("in").join(b.stream("other"), max), "within windows=JoinWindows"),
        (lambda b: b.stream("in").process(Silent()), "give it the class or a function"),
    ],
)
def test_what_cannot_work_is_said_where_it_stands(
    builder: StreamsBuilder, build: Callable[[StreamsBuilder], object], says: str
) -> None:
    with pytest.raises(TopologyError, match=says):
        build(builder)
