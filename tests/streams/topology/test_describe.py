"""``Topology.describe()`` against what Apache Kafka 4.4's StreamsBuilder prints for the same programs.

The golden files are printed by tests/java/Describe.java, the same calls in the same order; with REWRITE=1 in
the environment they are written again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from streams import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Grouped,
    JoinWindows,
    Materialized,
    Processor,
    RecordContext,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    ValueTransformer,
)
from streams.serdes import String, TimeWindowed
from streams.state import StoreSpec
from tests.support import java

GOLDEN = Path(__file__).parents[1] / "golden" / "describe"
PROGRAMS: dict[str, Callable[[StreamsBuilder], object]] = {}


def program(name: str) -> Callable[[Callable[[StreamsBuilder], object]], Callable[[StreamsBuilder], object]]:
    def register(build: Callable[[StreamsBuilder], object]) -> Callable[[StreamsBuilder], object]:
        PROGRAMS[name] = build
        return build

    return register


def true(key: Any, value: Any) -> bool:
    return True


@program("tables-grouped")
def tables_grouped(b: StreamsBuilder) -> None:
    table = b.table("in")
    group = table.group_by(lambda k, v: (v, k))
    group.count().to_stream().to("counts")
    group.reduce(lambda x, y: x, lambda x, y: x, store="reduced").to_stream().to("reductions")
    named = table.filter(true, name="kept").group_by(lambda k, v: (v, k), name="by-value")
    named.aggregate(str, lambda k, v, a: a, lambda k, v, a: a, name="sum").to_stream().to("sums")
    suppressed = named.count(name="number", store="numbers").suppress(Suppressed.until_time_limit(5))
    suppressed = suppressed.suppress(Suppressed.until_time_limit(5, name="held"))
    suppressed.map_values(str, store=Materialized()).to_stream().to("out")


@program("stateless")
def stateless(b: StreamsBuilder) -> None:
    stream = b.stream("in").filter(true).filter_not(true).map(lambda k, v: (k, v)).map_values(str)
    stream.flat_map(lambda k, v: []).flat_map_values(list).select_key(lambda k, v: k).peek(print).to("out")


@program("wordcount")
def wordcount(b: StreamsBuilder) -> None:
    words = b.stream("in").flat_map_values(lambda v: v.split()).group_by(lambda k, v: v)
    words.count(store="counts").to_stream().to("out")


@program("count-by-key")
def count_by_key(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count().to_stream().to("out")


@program("flights")
def flights(b: StreamsBuilder) -> None:
    airlines = b.table("airlines")
    joined = b.stream("flights").join(airlines, lambda f, a: f + a)
    windows = joined.group_by_key().windowed_by(TimeWindows(timedelta(days=1), grace=timedelta(days=400)))
    table = windows.aggregate(
        str, lambda k, v, a: a, store=Materialized(name="delays", retention=timedelta(days=401))
    )
    table.to_stream().map(lambda k, v: (k.key, v)).to("airline-delays")


@program("table-ops")
def table_ops(b: StreamsBuilder) -> None:
    b.table("t", store="store").filter(true).map_values(str).to_stream().to("out")


@program("merge")
def merge(b: StreamsBuilder) -> None:
    b.stream("a").merge(b.stream("b")).foreach(print)


@program("cogroup")
def cogroup(b: StreamsBuilder) -> None:
    one = b.stream("a").group_by_key()
    other = b.stream("b").group_by(lambda k, v: v)
    named = b.stream("c").group_by(lambda k, v: v, name="named")
    last = lambda k, v, a: v  # noqa: E731
    both = one.cogroup(last).cogroup(other, last)
    both.aggregate(str).to_stream().to("plain")
    both.aggregate(str, name="again", store="kept").to_stream().to("again")
    sessions = both.cogroup(named, last).windowed_by(SessionWindows(10))
    table = sessions.aggregate(str, lambda k, x, y: x, store="sessions")
    table.to_stream(lambda k, v: k.key).to("sessions")


@program("windows")
def windows(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(lambda k, v: v)
    sessions = grouped.windowed_by(SessionWindows(10))
    sessions.count().to_stream(lambda k, v: k.key).to("counts")
    again = grouped.windowed_by(SessionWindows(10))
    again.reduce(lambda x, y: x, name="reducer").to_stream(lambda k, v: k.key).to("reduced")
    slid = grouped.windowed_by(SlidingWindows(10), emit_strategy="on_window_close")
    slid.aggregate(str, lambda k, v, a: a).to_stream(lambda k, v: k.key).to("slid")
    unlimited = grouped.windowed_by(UnlimitedWindows())
    unlimited.count(store="all").to_stream(lambda k, v: k.key).to("all")


@program("to-table")
def to_table(b: StreamsBuilder) -> None:
    b.stream("a").to_table().to_stream().to("o")


@program("to-table-repartition")
def to_table_repartition(b: StreamsBuilder) -> None:
    b.stream("a").select_key(lambda k, v: v).to_table().to_stream(key=lambda k, v: k).to("o")


@program("join-repartition")
def join_repartition(b: StreamsBuilder) -> None:
    table = b.table("t")
    b.stream("a").map(lambda k, v: (v, k)).left_join(table, lambda x, y: x).to("o")


@program("shared-group")
def shared_group(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(lambda k, v: v)
    grouped.count().to_stream().to("c")
    grouped.reduce(lambda x, y: y).to_stream().to("r")


@program("named")
def named(b: StreamsBuilder) -> None:
    store = b.stream("in", name="source").filter(true, name="keep")
    counts = store.group_by(lambda k, v: v, Grouped(name="by-value")).count(name="counter", store="counts")
    counts.to_stream(name="back").to("out", name="sink")


@program("names-cost-numbers")
def names_cost_numbers(b: StreamsBuilder) -> None:
    stream = b.stream("in", name="S").filter(true, name="F").process(Processor, name="P")
    stream.map_values(str, name="V").group_by_key().count(store=Materialized(caching=False))
    table = b.table("t", name="T").filter(true, name="TF").to_stream(lambda k, v: k, name="TS").to_table()
    stream.merge(stream, name="M").join(table, lambda x, y: x, name="J").to("out", name="O")
    stream.to_table(name="TT").to_stream().to("end")


@program("shared-joins")
def shared_joins(b: StreamsBuilder) -> None:
    table, stream = b.table("t"), b.stream("in").select_key(lambda k, v: v, name="N")
    stream.join(table, lambda x, y: x).to("a")
    stream.left_join(table, lambda x, y: x).to("b")
    stream.join(table, lambda x, y: x, name="J").to("c")
    stream.join(table, lambda x, y: x).to("d")


@program("shared-windows")
def shared_windows(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(lambda k, v: v, name="G")
    grouped.windowed_by(TimeWindows(10)).count().to_stream().to("a")
    b.stream("other").group_by_key().count().to_stream().to("b")
    grouped.windowed_by(TimeWindows(20)).count().to_stream().to("c")
    grouped.count(store="S").to_stream().to("d")


WINDOWS = JoinWindows.of(timedelta(minutes=1), grace=timedelta(hours=1))


@program("foreign-joins")
def foreign_joins(b: StreamsBuilder) -> None:
    first = lambda x, y: x  # noqa: E731
    left, right = b.table("l"), b.table("r").filter(true)
    inner = left.map_values(str).join(right, first, foreign_key=lambda v: v)
    inner.left_join(b.table("t"), first, foreign_key=lambda k, v: v).to_stream().to("out")
    b.stream("s").join(left.join(right, first, foreign_key=lambda v: v), first).to("read")


@program("foreign-join-named")
def foreign_join_named(b: StreamsBuilder) -> None:
    first = lambda x, y: x  # noqa: E731
    joined = b.table("l").join(b.table("r"), first, foreign_key=lambda v: v, name="both", store="kept")
    joined.to_stream().to("out")


@program("table-joins")
def table_joins(b: StreamsBuilder) -> None:
    first = lambda x, y: x  # noqa: E731
    left, right = b.table("l"), b.table("r").filter(true)
    inner = left.join(right, first)
    both = inner.left_join(b.table("t").map_values(str), first)
    both.outer_join(left, first, store=Materialized()).to_stream().to("out")
    b.stream("s").join(left.join(right, first), first).to("read")


@program("table-joins-named")
def table_joins_named(b: StreamsBuilder) -> None:
    joined = b.table("l").outer_join(b.table("r"), lambda x, y: x, name="both", store="kept")
    joined.to_stream().to("out")


@program("global-table")
def global_table(b: StreamsBuilder) -> None:
    stream, first = b.stream("in"), b.global_table("g")
    second = b.global_table("h", name="named", store="kept")
    by_value = stream.select_key(lambda k, v: v).join(first, lambda x, y: x, key_selector=lambda k, v: v)
    joined = by_value.left_join(second, lambda x, y: x, key_selector=lambda k, v: v, name="by-value")
    joined.group_by_key().count().to_stream().to("out")


@program("stream-join")
def stream_join(b: StreamsBuilder) -> None:
    joined = b.stream("l").join(b.stream("r"), lambda x, y: x, windows=WINDOWS)
    joined.group_by_key().count().to_stream().to("out")


@program("stream-left-join")
def stream_left_join(b: StreamsBuilder) -> None:
    b.stream("l").left_join(b.stream("r"), lambda x, y: x, windows=WINDOWS).to("out")


@program("stream-outer-join")
def stream_outer_join(b: StreamsBuilder) -> None:
    b.stream("l").outer_join(b.stream("r"), lambda x, y: x, windows=WINDOWS).to("out")


@program("stream-join-repartition")
def stream_join_repartition(b: StreamsBuilder) -> None:
    left, right = b.stream("l"), b.stream("r")
    by_value = left.select_key(lambda k, v: v)
    by_value.join(right.map(lambda k, v: (v, k)), lambda x, y: x, windows=WINDOWS).to("out")


@program("stream-join-named")
def stream_join_named(b: StreamsBuilder) -> None:
    left, right = b.stream("l"), b.stream("r")
    left = left.select_key(lambda k, v: v, name="by-value")
    right = right.select_key(lambda k, v: v, name="by-value-too")
    options = StreamJoined(name="both", store="stores")
    left.outer_join(right, lambda x, y: x, options, windows=WINDOWS).to("out", name="sink")


@program("stream-self-join")
def stream_self_join(b: StreamsBuilder) -> None:
    stream = b.stream("l")
    stream.join(stream, lambda x, y: x, windows=WINDOWS).to("out")


@program("branches")
def branches(b: StreamsBuilder) -> None:
    split = b.stream("in").split().branch(true).branch(true, name="-b")
    split.branch(true, consumer=lambda stream: stream.to("c"))
    split.branch(true, chain=lambda stream: stream.map_values(str))
    for name, stream in sorted(split.default_branch().items()):
        stream.to(name, value_serde=str)
    b.stream("more").split().branch(true).no_default_branch()


@program("branches-named")
def branches_named(b: StreamsBuilder) -> None:
    split = b.stream("in").select_key(lambda k, v: v).split(name="by-")
    branches = split.branch(true, name="size").branch(true).default_branch(name="rest")
    branches["by-size"].group_by_key().count().to_stream().to("size")
    branches["by-2"].to("2")
    branches["by-rest"].to("rest")


@program("repartition")
def repartition(b: StreamsBuilder) -> None:
    b.stream("in").repartition().to("out")
    keyed = b.stream("keyed").select_key(lambda k, v: v).repartition(name="R", partitions=3)
    keyed.group_by_key().count().to_stream().to("counts")
    b.stream("more").repartition(name="given-repartition").map_values(str).to("end")


class Values(FixedKeyProcessor[str, str]):
    def process(self, record: FixedKeyRecord[str, str]) -> None:
        """Forward nothing."""


@program("values")
def values(b: StreamsBuilder) -> None:
    b.add_store(StoreSpec(name="seen", kind="key_value", key_serde=String(), value_serde=String()))
    stream = b.stream("in")
    store = stream.select_key(lambda k, v: v).process_values(Values, stores=["seen"])
    store = store.process_values(Values, name="again").map_values(lambda k, v: v)
    store.flat_map_values(lambda k, v: [v]).group_by_key().count().to_stream().print()
    stream.print(name="printer", label="label")


class Unchanged(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        return value


@program("transform-values")
def transform_values(b: StreamsBuilder) -> None:
    b.add_store(StoreSpec(name="seen", kind="key_value", key_serde=str, value_serde=str))
    table = b.table("in")
    plain = table.transform_values(Unchanged)
    b.stream("s").join(plain, lambda x, y: x + y).to("joined", value_serde=str)
    store = table.transform_values(Unchanged, stores=["seen"], name="T", store="kept")
    store.filter(true).to_stream().to("out")
    plain.group_by(lambda k, v: (v, k)).count().to_stream().to("counts")


@program("tables-grouped-again")
def tables_grouped_again(b: StreamsBuilder) -> None:
    first = lambda x, y: x  # noqa: E731
    group = b.table("in").group_by(lambda k, v: (v, k), name="by-value")
    group.count(store="first")
    b.table("between", store="kept")
    group.count()
    b.stream("behind").to("out")
    group.reduce(first, first, name="last", store="reduced")
    streams = b.stream("s").group_by(lambda k, v: v, name="streams")
    streams.count()
    b.table("more")
    streams.reduce(first).to_stream().to("reductions")


@program("same-topics")
def same_topics(b: StreamsBuilder) -> None:
    b.stream(["t", "u"]).to("a")
    b.stream("between").to("x")
    b.stream(["u", "t", "u"], name="again").map_values(lambda v: v).to("b")
    third = b.stream(["t", "u"])
    third.merge(b.stream(["t", "u"])).to("c")
    third.group_by_key().count(store="counts")


@program("same-topics-joined")
def same_topics_joined(b: StreamsBuilder) -> None:
    left = b.stream("t", name="one")
    left.join(b.stream("t", name="one"), lambda x, y: x, windows=JoinWindows.of(5)).to("joined")
    b.stream("t").join(b.table("u"), lambda x, y: x).to("with-table")
    b.stream("t").select_key(lambda k, v: v).join(b.table("v"), lambda x, y: x).to("by-value")
    b.stream("t").merge(b.stream("w")).group_by_key().count()


@program("patterns")
def patterns(b: StreamsBuilder) -> None:
    b.stream(re.compile("a-.*")).to("a")
    b.stream(re.compile("b-[0-9]+"), name="named").join(b.table("t"), lambda x, y: x).to("b")
    b.stream(re.compile("a-.*")).group_by(lambda k, v: v, name="by-value").count()


@program("global-table-alone")
def global_table_alone(b: StreamsBuilder) -> None:
    b.global_table("g", store="kept")


def by_value(key: str, value: str, context: RecordContext) -> str:
    return value


@program("chosen-topic")
def chosen_topic(b: StreamsBuilder) -> None:
    b.stream("in").to(by_value)


@program("global-stores")
def global_stores(b: StreamsBuilder) -> None:
    first = b.stream("in")
    store = StoreSpec(name="kept", kind="key_value", key_serde=str, value_serde=str)
    b.add_global_store(store, "g", Processor)
    b.add_global_store(replace(store, name="named"), "h", Processor, name="by-hand")
    first.process(Processor).to("out")


@program("self-joins-named")
def self_joins_named(b: StreamsBuilder) -> None:
    stream, windows = b.stream("in"), JoinWindows.of(5)
    plus = lambda x, y: x + y  # noqa: E731
    stream.left_join(stream, plus, windows=windows, name="left").to("left", value_serde=str)
    stream.outer_join(stream, plus, windows=windows).to("outer", value_serde=str)
    rekeyed = stream.select_key(lambda k, v: v, name="by-value")
    rekeyed.join(rekeyed, plus, StreamJoined(name="own", store="kept"), windows=windows).to("own")
    rekeyed.join(rekeyed.filter(true), plus, windows=windows).to("not-itself")


@program("one-key-changer")
def one_key_changer(b: StreamsBuilder) -> None:
    rekeyed = b.stream("in").select_key(lambda k, v: v)
    rekeyed.filter(true).group_by_key().count().to_stream().to("counts")
    rekeyed.group_by_key(name="named").reduce(lambda x, y: x).to_stream().to("reductions")
    rekeyed.to_table(name="table").to_stream().to("table")
    rekeyed.repartition(name="asked-for").group_by_key().count(name="apart")
    rekeyed.peek(print).to("as-they-are")
    once_more = rekeyed.filter_not(true).map(lambda k, v: (v, k))
    once_more.group_by_key().count(store="kept")
    once_more.join(b.table("t"), lambda x, y: x + y, name="joined").to("joined")
    b.stream("other").group_by(lambda k, v: v, name="grouped").count(name="counted")


@program("merged-key-changers")
def merged_key_changers(b: StreamsBuilder) -> None:
    one = b.stream("a").select_key(lambda k, v: v, name="one")
    other = b.stream("b").select_key(lambda k, v: v, name="other")
    both = one.merge(other)
    both.filter(true).group_by_key().count().to_stream().to("counts")
    both.group_by_key().reduce(lambda x, y: x, store="reduced").to_stream().to("reductions")


@program("values-changed-between")
def values_changed_between(b: StreamsBuilder) -> None:
    rekeyed = b.stream("in").map(lambda k, v: (v, k))
    rekeyed.map_values(str).group_by_key().count()
    rekeyed.flat_map_values(list).filter(true).group_by_key().reduce(lambda x, y: x)
    group = rekeyed.group_by_key()
    group.count(name="counted")
    group.windowed_by(TimeWindows(5)).count(name="by-window")


@program("copartitioned-behind-one-topic")
def copartitioned_behind_one_topic(b: StreamsBuilder) -> None:
    rekeyed, plain = b.stream("in").select_key(lambda k, v: v), b.stream("plain")
    plus = lambda x, y: x + y  # noqa: E731
    last = lambda k, v, a: a  # noqa: E731
    counts = rekeyed.group_by_key().reduce(lambda x, y: x)
    plain.join(counts, plus).join(rekeyed, plus, windows=JoinWindows.of(5)).to("out")
    rekeyed.left_join(counts, plus).to("joined")
    plain.group_by_key().cogroup(last).cogroup(rekeyed.group_by_key(), last).aggregate(str)


def node_by_node() -> Topology:
    topology = Topology(key_serde=str, value_serde=str)
    topology.add_source("source", "in").add_source("other", ["a", "b"])
    topology.add_processor("first", Processor, "source").add_processor(
        "second", Processor, ["first", "other"]
    )
    store = StoreSpec(name="kept", kind="key_value", key_serde=String(), value_serde=String())
    topology.add_state_store(store, "second").add_sink("sink", "out", ["second", "first"])
    topology.add_source("apart", "c").add_processor("third", Processor, "apart")
    topology.connect_processor_and_state_stores("third", "kept")
    return topology.add_source("alone", "d").add_sink("end", by_value, "alone")


@java.needs_jar("kafka-streams")
def test_kafka_describes_them_so() -> None:
    described = java.run_sections("Describe")
    if os.environ.get("REWRITE"):
        for name, text in described.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert described == {path.stem: path.read_text() for path in GOLDEN.glob("*.txt")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_description_is_kafkas(name: str) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    PROGRAMS[name](builder)
    assert builder.build().describe() == (GOLDEN / f"{name}.txt").read_text()


# Kafka moves a repartition topic over a join with a global table, whose values may have another serde.
AS_KAFKA_OPTIMIZES = [name for name in PROGRAMS if name != "global-table"]


@pytest.mark.parametrize("name", AS_KAFKA_OPTIMIZES)
def test_an_optimized_description_is_kafkas(name: str) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    PROGRAMS[name](builder)
    optimized = GOLDEN / f"{name}-optimized.txt"
    golden = optimized if optimized.exists() else GOLDEN / f"{name}.txt"
    assert builder.build(topology_optimization="all").describe() == golden.read_text()
    assert builder.build().describe() == (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.parametrize("rules", ["all", "none"])
def test_a_named_group_shares_its_topic_with_cogroups_as_kafka_optimizes(rules: str) -> None:
    builder, last = StreamsBuilder(key_serde=str, value_serde=str), lambda k, v, a: v
    grouped = builder.stream("in").group_by(lambda k, v: v, name="by-value")
    grouped.cogroup(last).aggregate(str).to_stream().to("first")
    grouped.count().to_stream().to("counts")
    both = grouped.cogroup(last).cogroup(builder.stream("other").group_by_key(), last)
    both.aggregate(str).to_stream().to("second")
    golden = (GOLDEN / "cogrouped-again-optimized.txt").read_text()
    assert builder.build(topology_optimization=rules).describe() == golden


def test_a_topology_made_node_by_node_is_described_as_kafkas() -> None:
    assert node_by_node().describe() == (GOLDEN / "node-by-node.txt").read_text()


def test_windowed_keys_reach_a_topic_with_their_serde() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    table = builder.stream("in").group_by_key().windowed_by(TimeWindows(1000)).count()
    table.to_stream().to("out", name="sink")
    sink: Any = builder.build().nodes["sink"]
    assert isinstance(sink.key_serde, TimeWindowed)
