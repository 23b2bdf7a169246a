"""The scenarios of Kafka's own tests of streams, with what its TopologyTestDriver wrote, and ours.

golden/published has a script for each of Kafka's test classes, with its keys, values and times; those of
windows are in golden/windows. tests/java/Published.java plays them and says how they read; with REWRITE=1 in
the environment they are written again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.errors import StreamsError
from streams.testing import TopologyTestDriver
from tests.streams.support.published import GOLDEN, Scenario, scenarios
from tests.support import depth, java

EVERY = 8
"""Kafka's driver plays one scenario in so many at depth 1, since each opens files."""
START = 3
"""Where the wall clock begins."""


def read(word: str) -> str | None:
    return None if word == "-" else word


def played(scenario: Scenario) -> Iterator[str]:
    """Its lines with the records that ours writes."""
    numbers = itertools.count()
    with TopologyTestDriver(scenario.build(), start=START) as driver:
        for line in scenario.lines:
            if line.startswith("->"):
                continue
            yield line
            match line.split(" "):
                case ["pipe", topic, key, value, timestamp]:
                    headers = (("n", b"%d" % next(numbers)),)
                    try:
                        driver.input_topic(topic).pipe_input(read(key), read(value), int(timestamp), headers)
                    except StreamsError:
                        yield "-> fails"
                        return
            yield from written(driver)


def written(driver: TopologyTestDriver) -> Iterator[str]:
    for record in driver.output_topic("out", value_serde=str).read_all():
        key, value = ("-" if word is None else word or "''" for word in (record.key, record.value))
        whose = "".join(f" #{number.decode()}" for _, number in record.headers if number)
        yield f"-> {key} {value} {record.timestamp}{whose}"


@depth.sample(40)
@pytest.mark.parametrize("scenario", list(scenarios()), ids=lambda scenario: scenario.title)
def test_ours_are_kafkas(scenario: Scenario) -> None:
    assert list(played(scenario)) == scenario.lines


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(tmp_path: Path, kafka_state: str) -> None:
    """Kafka's driver writes the golden files. With REWRITE=1 it plays all scenarios, otherwise one in
    `EVERY`, beginning at another one in each script.
    """
    every = 1 if os.environ.get("REWRITE") else max(1, EVERY // depth.times(1))
    chosen = {}
    for number, path in enumerate(sorted(GOLDEN.glob("*.txt"))):
        head, *rest = path.read_text().split("\nscenario ")
        some = rest[number % min(every, len(rest)) :: every]
        chosen[path.stem] = "\nscenario ".join([head, *some]).rstrip("\n") + "\n"
        (tmp_path / path.name).write_text(chosen[path.stem])
    paths = [str(tmp_path / f"{name}.txt") for name in chosen]
    wrote = java.run_sections("Published", kafka_state, *paths)
    if os.environ.get("REWRITE"):
        for name, text in wrote.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert wrote == chosen
