"""Ours agrees with Kafka Streams: the same topology, the same records, every byte that is written.

Plans are random (`strategy`), and Kafka runs them in one process. One kind it refuses and ours does not: a
stream joined with a table of a named grouping that is aggregated once more later; it "is not added yet".
Optimized, two aggregations behind one filter behind what changed the key are another: a "null
keyChangingChild".

Some plans are frozen with what Kafka wrote, in golden, where each file begins with its plan: a difference
that was mended is kept by putting its line there. With REWRITE=1 in the environment the rest is written
again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.streams.differential.plan import Plan
from tests.streams.differential.runs import REFUSED, Kafkas, ours
from tests.streams.differential.strategy import full_buffers, plans
from tests.support import java
from tests.support.depth import times
from tests.support.memory_folder import memory_folder

GOLDEN = Path(__file__).parent / "golden"
TOPOLOGIES = 250
FULL_BUFFERS = 40
HELD_BACK = ["grouped-tables-held-back", "table-held-back-in-bytes", "windows-held-back"]
"""Topologies with `suppress`: until a time, once behind a repartition topic, and until windows close."""


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafkas]:
    with memory_folder(tmp_path_factory.mktemp("kafkas")) as folder:
        process = Kafkas(folder)
        yield process
        process.close()


def frozen(name: str) -> tuple[Plan, str]:
    line, _, answer = (GOLDEN / f"{name}.txt").read_text().partition("\n")
    return Plan.of(line), answer


NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))


def check(plan: Plan, kafkas: str) -> None:
    """Fail with the plan and the lines that differ."""
    lines = kafkas.splitlines(), ours(plan).splitlines()
    if lines[0] != lines[1] and not lines[0][0] == lines[1][0] == REFUSED:
        differences = "\n".join(unified_diff(*lines, "Kafka's", "ours", lineterm="", n=2))
        pytest.fail(f"{plan!r}\n{differences}", pytrace=False)


@java.needs_jar("kafka-streams-test-utils")
def test_random_topologies(kafkas: Kafkas) -> None:
    @settings(max_examples=times(TOPOLOGIES), suppress_health_check=list(HealthCheck), database=None)
    @given(plan=plans())
    def agree(plan: Plan) -> None:
        answer = kafkas.run(plan)
        assume("is not added yet" not in answer)
        check(plan, answer)

    agree()


@java.needs_jar("kafka-streams-test-utils")
def test_random_topologies_that_are_optimized(kafkas: Kafkas) -> None:
    @settings(max_examples=times(TOPOLOGIES), suppress_health_check=list(HealthCheck), database=None)
    @given(plan=plans("all"))
    def agree(plan: Plan) -> None:
        answer = kafkas.run(plan)
        assume(not any(mistake in answer for mistake in ("is not added yet", "null keyChangingChild")))
        check(plan, answer)

    agree()


@java.needs_jar("kafka-streams-test-utils")
@pytest.mark.parametrize("name", HELD_BACK)
def test_full_buffers(kafkas: Kafkas, name: str) -> None:
    """Kafka and ours emit the same records early from a full buffer, or end with the buffer at the same size
    in bytes.
    """

    @settings(max_examples=times(FULL_BUFFERS), suppress_health_check=list(HealthCheck), database=None)
    @given(plan=full_buffers(frozen(name)[0].steps))
    def agree(plan: Plan) -> None:
        check(plan, kafkas.run(plan))

    agree()


@pytest.mark.parametrize("name", NAMES)
def test_frozen_topologies(name: str) -> None:
    check(*frozen(name))


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(kafkas: Kafkas) -> None:
    for name in NAMES:
        plan, answer = frozen(name)
        output = kafkas.run(plan)
        if os.environ.get("REWRITE"):
            (GOLDEN / f"{name}.txt").write_text(f"{plan.line}\n{output}")
        else:
            assert output == answer, name
