"""The rules of streams held to Kafka's own: scripts in golden/rules, with what its TopologyTestDriver wrote.

tests/java/Rules.java plays them and says how they read; with REWRITE=1 in the environment they are written
again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from streams import (
    JoinWindows,
    KGroupedTable,
    KStream,
    Materialized,
    Processor,
    ProcessorContext,
    Record,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    ValueTransformer,
    log_and_continue,
)
from streams.testing import TopologyTestDriver
from streams.topology import Handlers
from tests.support import java

RULES = Path(__file__).parents[1] / "golden" / "rules"
START = 3
"""Where the wall clock begins."""


class Sums(Processor[str, str]):
    """A processor of running sums, as `Sums` in tests/java/Rules.java."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.total = 0
        context.schedule(10, lambda now: self.tell("stream", now))
        context.schedule(100, lambda now: self.tell("wall", now), on="wall_clock")

    def process(self, record: Record[str, str]) -> None:
        self.total += int(record.value)

    def tell(self, clock: str, now: int) -> None:
        self.context.forward(Record(clock, str(self.total), now))


def joined(value: str, other: str | None) -> str:
    return f"{value}+{'null' if other is None else other}"


def punctuation(b: StreamsBuilder) -> None:
    b.stream("in").process(Sums).to("out")


def count(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count().to_stream().map_values(str).to("out", value_serde=str)


def reduce(b: StreamsBuilder) -> None:
    b.stream("in").group_by(lambda k, v: k).reduce(lambda x, y: x + y).to_stream().to("out")


def windows(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by_key().windowed_by(TimeWindows(10, grace=5)).count()
    rows = counts.to_stream().map(lambda k, v: (f"{k.key}@{k.window.start}", str(v)))
    rows.to("out", key_serde=str, value_serde=str)


def join(b: StreamsBuilder) -> None:
    b.stream("in").join(b.table("t"), joined).to("out")


def left_join(b: StreamsBuilder) -> None:
    b.stream("in").left_join(b.table("t"), joined).to("out")


def table(b: StreamsBuilder) -> None:
    filtered = b.table("in").filter(lambda k, v: not v.startswith("x"))
    filtered.map_values(lambda v: v + "!").to_stream().to("out")


def left_out(b: StreamsBuilder) -> None:
    numbers = b.stream("in").flat_map_values(lambda v: v.split(","))
    numbers.map_values(lambda v: str(12 // int(v))).to("out", value_serde=str)


def branches(b: StreamsBuilder) -> None:
    split = b.stream("in").split(name="by-").branch(lambda k, v: v.startswith("a"), name="a")
    split.branch(lambda k, v: v.startswith("ab"), consumer=lambda stream: stream.to("out"))
    split.branch(lambda k, v: v.startswith("b"), name="b")
    for name, stream in split.default_branch(name="rest").items():
        named_values(stream, name).to("out", value_serde=str)


def named_values(stream: KStream[str, str], name: str) -> KStream[str, str]:
    return stream.map_values(lambda k, v: f"{name}:{k}{v}")


def table_without_a_store(b: StreamsBuilder) -> None:
    b.table("in").filter(lambda k, v: not v.startswith("x")).to_stream().to("out")


def table_kept_again(b: StreamsBuilder) -> None:
    filtered = b.table("in", store="all").filter(lambda k, v: not v.startswith("x"), store="kept")
    filtered.map_values(lambda v: v + "!", store=Materialized(name="mapped", value_serde=str)).to_stream().to(
        "out"
    )


def by_first_letter(b: StreamsBuilder) -> KGroupedTable[str, str]:
    """Return a table grouped by first letters; values that begin with `.` are in no group."""
    return b.table("in").group_by(lambda k, v: (None if v.startswith(".") else v[0], v))


def grouped_table(b: StreamsBuilder) -> None:
    added = by_first_letter(b).aggregate(str, lambda k, v, a: f"{a}+{v}", lambda k, v, a: f"{a}-{v}")
    added.to_stream().to("out")


def grouped_table_count(b: StreamsBuilder) -> None:
    by_first_letter(b).count().to_stream().map_values(str).to("out", value_serde=str)


def grouped_table_reduce(b: StreamsBuilder) -> None:
    added = by_first_letter(b).reduce(lambda x, y: f"{x}+{y}", lambda x, y: None if x == y else f"{x}-{y}")
    added.to_stream().to("out")


def counts_grouped(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by_key().count(store=Materialized(name="c", caching=False))
    counts.group_by(lambda k, v: (f"n{v}", k)).count().to_stream().map_values(str).to("out", value_serde=str)


def suppress_window(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by_key().windowed_by(TimeWindows(10, grace=5)).count()
    last = counts.suppress(Suppressed.until_window_closes()).to_stream()
    rows = last.map(lambda k, v: (f"{k.key}@{k.window.start}", str(v)))
    rows.to("out", key_serde=str, value_serde=str)


class Lengths(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        if value is None:
            return "gone"
        return None if value == "x" else f"{key}{len(value)}"


def transformed(b: StreamsBuilder, store: Materialized | None = None) -> None:
    lengths = b.table("t").transform_values(Lengths, store=store)
    b.stream("in").left_join(lengths, joined).to("out")
    groups = lengths.group_by(lambda k, v: (v, k))
    groups.aggregate(str, lambda k, v, a: f"{a}+{v}", lambda k, v, a: f"{a}-{v}").to_stream().to("out")


def suppressed(b: StreamsBuilder, suppression: Suppressed) -> None:
    b.table("in").suppress(suppression).to_stream().to("out")


def suppress_joined(b: StreamsBuilder) -> None:
    table = b.table("t").suppress(Suppressed.until_time_limit(10))
    b.stream("in").left_join(table, joined).to("out")


def streams(kind: str, windows: JoinWindows) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        left, right = b.stream("l"), b.stream("r")
        text_of = lambda x, y: joined("null" if x is None else x, y)  # noqa: E731
        getattr(left, kind)(right, text_of, windows=windows).to("out")

    return build


STRINGS = StreamJoined(key_serde=str, value_serde=str, other_value_serde=str)


def streams_repartitioned(kind: str) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        left, right = (b.stream(topic).map(lambda k, v: (k, v)) for topic in "lr")
        both = getattr(left, kind)(right, either, STRINGS, windows=JoinWindows.of(10, grace=5))
        both.to("out", value_serde=str)

    return build


def streams_joined_again(b: StreamsBuilder) -> None:
    right, windows = b.stream("r"), JoinWindows.of(10, grace=5)
    first = b.stream("l").join(right, joined, windows=windows)
    first.join(right, joined, STRINGS, windows=windows).to("out")


def stream_and_table(kind: str) -> Callable[[StreamsBuilder], None]:
    return lambda b: getattr(b.stream("l"), kind)(b.table("r"), joined).to("out", value_serde=str)


def selected(key: str, value: str | None) -> str | None:
    return None if value == "none" else value


def with_key(key: str | None, value: str, other: str | None) -> str:
    return f"{'null' if key is None else key}:{joined(value, other)}"


def global_join(b: StreamsBuilder) -> None:
    table = b.global_table("t")
    b.stream("in").join(table, with_key, key_selector=selected).to("out")


def global_left_join(b: StreamsBuilder) -> None:
    table = b.global_table("t")
    b.stream("in").left_join(table, with_key, key_selector=selected).to("out")


def join_with_key(b: StreamsBuilder) -> None:
    table = b.table("t")
    b.stream("in").left_join(table, with_key).to("out")


def either(value: str | None, other: str | None) -> str:
    return joined("null" if value is None else value, other)


def tables(kind: str, store: str | None) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        getattr(b.table("l"), kind)(b.table("r"), either, store=store).to_stream().to("out", value_serde=str)

    return build


def joined_twice(kind: str) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        left = b.table("l").filter(lambda k, v: not v.startswith("x"))
        first = getattr(left, kind)(b.table("r"), either)
        both = getattr(first, kind)(b.table("t").map_values(lambda v: v + "!"), either)
        both.filter(lambda k, v: "7" not in v).to_stream().to("out", value_serde=str)

    return build


def joined_again(kind: str, again: str) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        right = b.table("r")
        first = getattr(b.table("l"), kind)(right, either)
        getattr(first, again)(right, either, store="joined").to_stream().to("out", value_serde=str)

    return build


def tables_uncached(kind: str) -> Callable[[StreamsBuilder], None]:
    def build(b: StreamsBuilder) -> None:
        left, right, both = (Materialized(name=name, caching=False) for name in ("left", "right", "joined"))
        table = getattr(b.table("l", store=left), kind)(b.table("r", store=right), either, store=both)
        table.to_stream().to("out", value_serde=str)

    return build


def foreign_key(value: str) -> str | None:
    key = value.split("|")[0]
    return None if key == "none" else key


def foreign_join(b: StreamsBuilder) -> None:
    joined = b.table("l").join(b.table("r"), either, foreign_key=foreign_key)
    joined.to_stream().to("out", value_serde=str)


def foreign_left_join(b: StreamsBuilder) -> None:
    joined = b.table("l").left_join(b.table("r"), either, foreign_key=foreign_key)
    joined.to_stream().to("out", value_serde=str)


def foreign_join_stored(b: StreamsBuilder) -> None:
    table = b.table("l").filter(lambda k, v: "7" not in v)
    other = b.table("r").map_values(lambda v: v + "!", store=Materialized(key_serde=str, value_serde=str))
    own_key = lambda k, v: k if v.startswith("x|") else foreign_key(v)  # noqa: E731
    joined = table.left_join(other, either, foreign_key=own_key, store="joined")
    joined.filter(lambda k, v: "3" not in v).to_stream().to("out", name="of-table")
    b.stream("in").left_join(joined, either).to("out", value_serde=str)


def self_join(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.left_join(stream, with_key, windows=JoinWindows.of(10, grace=5)).to("out")


def odd(one: str | None, other: str | None) -> str | None:
    """Return None where the other value ends with 0, else both values joined."""
    return None if other is not None and other.endswith("0") else f"{shown(one)}+{shown(other)}"


def shown(value: str | None) -> str:
    """Return the value as Java concatenates it."""
    return "null" if value is None else value


def add(key: str, value: str, result: str | None) -> str | None:
    return odd(result, value)


def subtract(key: str, value: str, result: str | None) -> str | None:
    return None if value.endswith("1") else f"{shown(result)}-{value}"


def no_value() -> str | None:
    return None


def nulls_aggregate(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().aggregate(no_value, add, value_serde=str).to_stream().to("out")


def nulls_reduce(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().reduce(odd).to_stream().to("out")


def nulls_told(b: StreamsBuilder) -> None:
    store = Materialized(name="a", caching=False, value_serde=str)
    table = b.stream("in").group_by_key().aggregate(lambda: "", add, store=store)
    again = table.group_by(lambda k, v: (v[-1], v), value_serde=str)
    again.aggregate(str, lambda k, v, a: f"{a},{v}", lambda k, v, a: f"{a}-{v}").to_stream().to("out")


def nulls_grouped_table(b: StreamsBuilder) -> None:
    by_first_letter(b).aggregate(no_value, add, subtract, value_serde=str).to_stream().to("out")


def nulls_grouped_table_reduce(b: StreamsBuilder) -> None:
    undo = lambda x, y: None if y.endswith("1") else f"{x}-{y}"  # noqa: E731
    by_first_letter(b).reduce(odd, undo).to_stream().to("out")


def nulls_cogroup(b: StreamsBuilder) -> None:
    both = b.stream("in").group_by_key().cogroup(add)
    both = both.cogroup(b.stream("other").group_by_key(), lambda k, v, a: odd(a, f"{v}*"))
    both.aggregate(no_value, value_serde=str).to_stream().to("out")


def nulls_not_stored(b: StreamsBuilder) -> None:
    table = b.table("l").outer_join(b.table("r"), odd).filter(lambda k, v: not v.endswith("7"))
    table.left_join(b.table("r2"), lambda x, y: f"{x}/{shown(y)}").to_stream().to("out", value_serde=str)


def nulls_of_values(b: StreamsBuilder) -> None:
    store = Materialized(name="m", value_serde=str)
    again = b.table("in").map_values(lambda v: odd("t", v), store=store).group_by(lambda k, v: (k, v))
    again.reduce(lambda x, y: x + y, lambda x, y: f"{x}-{y}").to_stream().to("out", value_serde=str)
    b.stream("l").map_values(lambda v: odd("s", v)).to("out", value_serde=str)
    b.stream("l").filter(lambda k, v: True).flat_map_values(lambda v: [v, None]).to("out", value_serde=str)


PROGRAMS: dict[str, Callable[[StreamsBuilder], None]] = {
    "punctuation": punctuation,
    "count": count,
    "reduce": reduce,
    "windows": windows,
    "join": join,
    "left-join": left_join,
    "table": table,
    "table-inner-join": tables("join", None),
    "table-left-join": tables("left_join", None),
    "table-outer-join": tables("outer_join", None),
    "table-inner-join-stored": tables("join", "joined"),
    "table-left-join-stored": tables("left_join", "joined"),
    "table-outer-join-stored": tables("outer_join", "joined"),
    "table-inner-join-read": joined_twice("join"),
    "table-left-join-read": joined_twice("left_join"),
    "table-outer-join-read": joined_twice("outer_join"),
    "foreign-join": foreign_join,
    "foreign-left-join": foreign_left_join,
    "foreign-join-stored": foreign_join_stored,
    "global-join": global_join,
    "global-left-join": global_left_join,
    "join-with-key": join_with_key,
    "left-out": left_out,
    "branches": branches,
    "table-without-a-store": table_without_a_store,
    "table-kept-again": table_kept_again,
    "grouped-table": grouped_table,
    "grouped-table-count": grouped_table_count,
    "grouped-table-reduce": grouped_table_reduce,
    "counts-grouped": counts_grouped,
    "suppress-window": suppress_window,
    "suppress-time": lambda b: suppressed(b, Suppressed.until_time_limit(10)),
    "suppress-records": lambda b: suppressed(b, Suppressed.until_time_limit(1000, max_records=2)),
    "suppress-bytes": lambda b: suppressed(b, Suppressed.until_time_limit(1000, max_bytes=100)),
    "suppress-joined": suppress_joined,
    "transform-values": transformed,
    "transform-values-kept": lambda b: transformed(b, Materialized(name="lengths", value_serde=str)),
    "stream-join": streams("join", JoinWindows.of(10, grace=5)),
    "stream-left-join": streams("left_join", JoinWindows.of(10, grace=5)),
    "stream-outer-join": streams("outer_join", JoinWindows.of(10, grace=5)),
    "stream-outer-join-throttled": streams("outer_join", JoinWindows.of(10, grace=5)),
    "stream-outer-join-before": streams("outer_join", JoinWindows(before=10, after=0)),
    "stream-left-join-after": streams("left_join", JoinWindows(before=-2, after=10, grace=5)),
    "stream-outer-join-same-time": streams("outer_join", JoinWindows.of(0)),
    "stream-self-join": self_join,
    "stream-inner-random": streams("join", JoinWindows(before=10, after=5, grace=5)),
    "stream-left-random": streams("left_join", JoinWindows(before=10, after=5, grace=5)),
    "stream-outer-random": streams("outer_join", JoinWindows(before=10, after=5, grace=5)),
}

KINDS = {"inner": "join", "left": "left_join", "outer": "outer_join"}
PROGRAMS |= {
    **{f"table-{name}-join-uncached": tables_uncached(kind) for name, kind in KINDS.items()},
    **{
        f"table-{name}-{then}-join": joined_again(kind, again)
        for name, kind in KINDS.items()
        for then, again in KINDS.items()
    },
    **{f"stream-{name}-join-repartitioned": streams_repartitioned(kind) for name, kind in KINDS.items()},
    "nulls-aggregate": nulls_aggregate,
    "nulls-reduce": nulls_reduce,
    "nulls-aggregate-told": nulls_told,
    "nulls-grouped-table": nulls_grouped_table,
    "nulls-grouped-table-reduce": nulls_grouped_table_reduce,
    "nulls-cogroup": nulls_cogroup,
    "nulls-stream-join": lambda b: (
        b.stream("l")
        .left_join(b.stream("r"), odd, windows=JoinWindows.of(10, grace=5))
        .to("out", value_serde=str)
    ),
    "nulls-stream-table-join": lambda b: (
        b.stream("l").left_join(b.table("r"), odd).to("out", value_serde=str)
    ),
    "nulls-table-join": lambda b: (
        b.table("l").outer_join(b.table("r"), odd, store="joined").to_stream().to("out", value_serde=str)
    ),
    "nulls-table-join-not-stored": nulls_not_stored,
    "nulls-foreign-join": lambda b: (
        b.table("l")
        .left_join(b.table("r"), odd, foreign_key=lambda v: v[0])
        .to_stream()
        .to("out", value_serde=str)
    ),
    "nulls-values": nulls_of_values,
    "stream-inner-inner-join": streams_joined_again,
    "stream-table-inner-join": stream_and_table("join"),
    "stream-table-left-join": stream_and_table("left_join"),
}
"""Scripts that do what Kafka's own integration tests of joins do."""


class Step(NamedTuple):
    """A line that does something, and the records Kafka wrote by it."""

    line: str
    wrote: list[str]


def steps(script: str) -> Iterator[Step]:
    result: list[Step] = []
    for line in script.splitlines():
        if line.startswith("-> "):
            result[-1].wrote.append(line)
        elif not line.startswith("#"):
            result.append(Step(line, []))
    return iter(result)


def played(driver: TopologyTestDriver, line: str) -> list[str]:
    """Return the records that ours writes in a step."""
    match line.split(" "):
        case ["pipe", topic, key, value, timestamp]:
            key_and_value = [None if word == "-" else word for word in (key, value)]
            driver.input_topic(topic).pipe_input(*key_and_value, int(timestamp))
        case ["wall", by]:
            driver.advance_wall_clock(int(by))
        case _:
            raise AssertionError(line)
    records = driver.output_topic("out").read_all()
    return [f"-> {text_of(record.key)} {text_of(record.value)} {record.timestamp}" for record in records]


def text_of(value: str | None) -> str:
    return "-" if value is None else value


@pytest.mark.parametrize("name", PROGRAMS)
def test_ours_are_kafkas(name: str) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    PROGRAMS[name](builder)
    every_ms = 1000 if name.endswith("-throttled") else 0
    handlers = Handlers(processing=log_and_continue)
    with TopologyTestDriver(
        builder, start=START, handlers=handlers, outer_join_emit_interval_ms=every_ms
    ) as driver:
        for line, wrote in steps((RULES / f"{name}.txt").read_text()):
            assert played(driver, line) == wrote, line


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(kafka_state: str) -> None:
    paths = sorted(RULES.glob("*.txt"))
    assert {path.stem for path in paths} == PROGRAMS.keys()
    wrote = java.run_sections("Rules", kafka_state, *map(str, paths))
    if os.environ.get("REWRITE"):
        for name, text in wrote.items():
            (RULES / f"{name}.txt").write_text(text)
    assert wrote == {path.stem: path.read_text() for path in paths}
