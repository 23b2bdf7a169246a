"""The rules of streams held to Kafka's own: scripts in golden/rules, with what its TopologyTestDriver wrote.

tests/java/Rules.java plays them and says how they read; with REWRITE=1 in the environment they are written
anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from streams import Processor, ProcessorContext, Record, StreamsBuilder, TimeWindows
from streams.testing import TopologyTestDriver
from tests.support import java

RULES = Path(__file__).parent / "golden" / "rules"
START = 3
"""Where the wall clock begins."""


class Sums(Processor[str, str]):
    """As `Sums` in tests/java/Rules.java."""

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
    told = counts.to_stream().map(lambda k, v: (f"{k.key}@{k.window.start}", str(v)))
    told.to("out", key_serde=str, value_serde=str)


def join(b: StreamsBuilder) -> None:
    b.stream("in").join(b.table("t"), joined).to("out")


def left_join(b: StreamsBuilder) -> None:
    b.stream("in").left_join(b.table("t"), joined).to("out")


def table(b: StreamsBuilder) -> None:
    kept = b.table("in").filter(lambda k, v: not v.startswith("x"))
    kept.map_values(lambda v: v + "!").to_stream().to("out")


PROGRAMS: dict[str, Callable[[StreamsBuilder], None]] = {
    "punctuation": punctuation,
    "count": count,
    "reduce": reduce,
    "windows": windows,
    "join": join,
    "left-join": left_join,
    "table": table,
}


class Step(NamedTuple):
    """A line that does something, and the records Kafka wrote by it."""

    line: str
    wrote: list[str]


def steps(script: str) -> Iterator[Step]:
    found: list[Step] = []
    for line in script.splitlines():
        if line.startswith("-> "):
            found[-1].wrote.append(line)
        elif not line.startswith("#"):
            found.append(Step(line, []))
    return iter(found)


def played(driver: TopologyTestDriver, line: str) -> list[str]:
    """The records ours writes by a step."""
    match line.split(" "):
        case ["pipe", topic, key, value, timestamp]:
            given = [None if word == "-" else word for word in (key, value)]
            driver.input_topic(topic).pipe_input(*given, int(timestamp))
        case ["wall", by]:
            driver.advance_wall_clock(int(by))
        case _:
            raise AssertionError(line)
    records = driver.output_topic("out").read_all()
    return [f"-> {told(record.key)} {told(record.value)} {record.timestamp}" for record in records]


def told(value: str | None) -> str:
    return "-" if value is None else value


@pytest.mark.parametrize("name", PROGRAMS)
def test_ours_are_kafkas(name: str) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    PROGRAMS[name](builder)
    with TopologyTestDriver(builder, start=START) as driver:
        for line, wrote in steps((RULES / f"{name}.txt").read_text()):
            assert played(driver, line) == wrote, line


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(tmp_path: Path) -> None:
    paths = sorted(RULES.glob("*.txt"))
    assert [path.stem for path in paths] == sorted(PROGRAMS)
    wrote = java.run_sections("Rules", str(tmp_path), *map(str, paths))
    if os.environ.get("REWRITE"):
        for name, text in wrote.items():
            (RULES / f"{name}.txt").write_text(text)
    assert wrote == {path.stem: path.read_text() for path in paths}
