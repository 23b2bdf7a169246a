"""Versioned stores and tables held to Kafka's own: scripts in golden/versioned, with what came out there.

tests/java/Versioned.java plays them and says how they read; with REWRITE=1 in the environment they are
written again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from streams import KStream, KTable, Materialized, StreamsBuilder, ValueTransformer, VersionedRecord
from streams.state import VersionedStore
from streams.testing import TopologyTestDriver
from tests.support import java

SCRIPTS = Path(__file__).parents[1] / "golden" / "versioned"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.txt"))

Table = KTable[str, str]


class Lengths(ValueTransformer[str, str, str]):
    """A transformer that appends lengths, as `Lengths` in tests/java/Versioned.java."""

    def transform(self, key: str, value: str | None) -> str:
        return "none" if value is None else f"{value}{len(value)}"


def versioned(name: str) -> Materialized:
    return Materialized(
        name=name,
        value_serde=str,
        history_retention=timedelta(milliseconds=10),
        segment_interval=timedelta(milliseconds=3),
    )


def table(b: StreamsBuilder, topic: str, store: str) -> Table:
    return b.table(topic, store=versioned(store))


def derived(table: Table) -> Table:
    return table.filter(lambda k, v: not v.startswith("x")).map_values(lambda v: v + "!")


def joiner(value: str | None, other: str | None) -> str:
    return f"{value or 'null'}+{other or 'null'}"


def to_output(table: Table) -> None:
    table.to_stream().to("out")


def grouped(table: Table, store: Materialized) -> None:
    by_first = table.group_by(lambda k, v: (v[0], v), key_serde=str, value_serde=str)
    to_output(by_first.aggregate(str, added, taken_back, value_serde=str, store=store))


def added(key: str, value: str, so_far: str) -> str:
    return f"{so_far}+{value}"


def taken_back(key: str, value: str, so_far: str) -> str:
    return f"{so_far}-{value}"


def reduced(b: StreamsBuilder) -> Table:
    def add(so_far: str, value: str) -> str:
        return None if value.startswith("x") else so_far + value  # type: ignore[return-value]

    return b.stream("in").group_by_key().reduce(add, store=versioned("sums"))


def reduce_told(b: StreamsBuilder) -> None:
    filtered = reduced(b).filter(lambda k, v: len(v) % 3 != 0)
    all_of_them = filtered.group_by(lambda k, v: ("all", v), key_serde=str, value_serde=str)
    to_output(all_of_them.aggregate(str, added, taken_back, value_serde=str))


def derived_kept(b: StreamsBuilder) -> None:
    filtered = table(b, "in", "versions").filter(lambda k, v: not v.startswith("x"), store=versioned("kept"))
    to_output(filtered.map_values(lambda v: v + "!", store=Materialized(name="mapped", value_serde=str)))


def kept_versions(b: StreamsBuilder) -> None:
    filtered = b.table("in").filter(lambda k, v: not v.startswith("x"), store=versioned("kept"))
    to_output(filtered.map_values(lambda v: v + "!"))


def joined(left: Table, right: Table, kind: str, store: Materialized | None = None) -> Table:
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[kind]
    return join(right, joiner, store=store)


def foreign_join(b: StreamsBuilder) -> None:
    to_output(table(b, "l", "ls").join(table(b, "r", "rs"), joiner, foreign_key=lambda v: v[1:]))


def foreign_left_join(b: StreamsBuilder) -> None:
    left, right, store = table(b, "l", "ls"), table(b, "r", "rs"), versioned("joined")
    to_output(left.left_join(right, joiner, foreign_key=lambda v: v[1:], store=store))


def stream(b: StreamsBuilder) -> KStream[str, str]:
    return b.stream("in")


def transformed_join(b: StreamsBuilder) -> None:
    stream(b).left_join(table(b, "t", "ts").transform_values(Lengths), joiner).to("out", value_serde=str)


def unversioned_join(b: StreamsBuilder) -> None:
    records = stream(b)
    both = joined(table(b, "t", "ts"), table(b, "r", "rs"), "left")
    records.left_join(both, joiner).to("out", value_serde=str)


def named_join(b: StreamsBuilder) -> None:
    rekeyed = stream(b).select_key(lambda k, v: v[:1])
    rekeyed.left_join(table(b, "t", "ts"), joiner, grace=5, name="named", key_serde=str).to("out")


PROGRAMS: dict[str, Callable[[StreamsBuilder], object]] = {
    "store": lambda b: table(b, "in", "versions"),
    "table": lambda b: to_output(table(b, "in", "versions")),
    "to-table": lambda b: to_output(b.stream("in").to_table(store=versioned("versions"))),
    "derived": lambda b: to_output(derived(table(b, "in", "versions"))),
    "derived-kept": derived_kept,
    "kept-versions": kept_versions,
    "grouped": lambda b: grouped(derived(table(b, "in", "versions")), Materialized(name="sums")),
    "grouped-versions": lambda b: grouped(b.table("in"), versioned("sums")),
    "reduce": lambda b: to_output(reduced(b)),
    "reduce-told": reduce_told,
    "foreign-join": foreign_join,
    "foreign-left-join": foreign_left_join,
    "stream-join": lambda b: stream(b).join(table(b, "t", "ts"), joiner).to("out"),
    "stream-left-join": lambda b: stream(b).left_join(derived(table(b, "t", "ts")), joiner).to("out"),
    "stream-transformed-join": transformed_join,
    "stream-join-unversioned": unversioned_join,
    "stream-join-grace": lambda b: stream(b).join(table(b, "t", "ts"), joiner, grace=5).to("out"),
    "stream-left-join-grace": lambda b: (
        stream(b).left_join(derived(table(b, "t", "ts")), joiner, grace=10).to("out")
    ),
    "stream-join-no-grace": lambda b: stream(b).join(table(b, "t", "ts"), joiner, grace=0).to("out"),
    "stream-join-grace-named": named_join,
}


def table_join(kind: str) -> Callable[[StreamsBuilder], None]:
    return lambda b: to_output(joined(table(b, "l", "ls"), table(b, "r", "rs"), kind))


def table_join_one(kind: str) -> Callable[[StreamsBuilder], None]:
    return lambda b: to_output(joined(derived(table(b, "l", "ls")), b.table("r"), kind, versioned("joined")))


for each in ("inner", "left", "outer"):
    PROGRAMS[f"table-{each}-join"] = table_join(each)
    PROGRAMS[f"table-{each}-join-one"] = table_join_one(each)


def read(word: str) -> str | None:
    return None if word == "-" else word


def number(word: str) -> int | None:
    return None if word == "-" else int(word)


def shown(value: object) -> str:
    return "-" if value is None else str(value)


def shown_version(version: VersionedRecord[str] | None) -> str:
    return "-" if version is None else f"{version.value} {version.timestamp}"


def played(driver: TopologyTestDriver, line: str) -> list[str]:
    """Return what a step of a script writes or reads."""
    match line.split():
        case ["pipe", topic, key, value, timestamp]:
            driver.input_topic(topic).pipe_input(read(key), read(value), int(timestamp))
            if not any(node.name.startswith("KSTREAM-SINK") for node in driver.topology.nodes.values()):
                return []
            wrote = driver.output_topic("out", value_serde=str).read_all()
            return [f"{shown(each.key)} {shown(each.value)} {each.timestamp}" for each in wrote]
        case ["put", key, value, timestamp]:
            return [str(store_of(driver).put(key, read(value), int(timestamp)))]
        case ["delete", key, timestamp]:
            return [shown_version(store_of(driver).delete(key, int(timestamp)))]
        case ["get", key, *as_of]:
            return [shown_version(store_of(driver).get(key, *map(int, as_of)))]
        case ["versions", key, begin, end, order]:
            is_up = order == "ascending"
            versions = store_of(driver).versions(key, number(begin), number(end), descending=not is_up)
            kafkas = [each for each in versions if kafka_finds(each, number(end))]
            return [f"{shown_version(each)} {shown(each.valid_to)}" for each in kafkas]
    return []


def kafka_finds(version: VersionedRecord[str], to_time: int | None) -> bool:
    """Kafka looks in no segment behind that of ``to_time``, and so misses versions that end there."""
    return to_time is None or version.valid_to is None or version.valid_to // 3 <= to_time // 3


def store_of(driver: TopologyTestDriver) -> VersionedStore[str, str]:
    return driver.versioned_store("versions")


def steps(script: str) -> Iterator[tuple[str, list[str]]]:
    line, wrote = "", list[str]()
    for each in script.splitlines():
        if each.startswith("-> "):
            wrote.append(each.removeprefix("-> "))
        elif not each.startswith("|"):
            yield line, wrote
            line, wrote = each, []
    yield line, wrote


@pytest.mark.parametrize("name", NAMES)
def test_ours_are_kafkas(name: str) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    PROGRAMS[name.split(".")[0]](builder)
    script = (SCRIPTS / f"{name}.txt").read_text()
    with TopologyTestDriver(builder, start=3) as driver:
        for line, wrote in steps(script):
            assert played(driver, line) == wrote, line
        described = [each[2:] for each in script.splitlines() if each.startswith("|")]
        assert str(driver.topology.describe()).splitlines() == described


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(kafka_state: str) -> None:
    paths = [SCRIPTS / f"{name}.txt" for name in NAMES]
    assert {name.split(".")[0] for name in NAMES} == PROGRAMS.keys()
    wrote = java.run_sections("Versioned", kafka_state, *map(str, paths))
    if os.environ.get("REWRITE"):
        for name, text in wrote.items():
            (SCRIPTS / f"{name}.txt").write_text(text)
    assert wrote == {path.stem: path.read_text() for path in paths}
