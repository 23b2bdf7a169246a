from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
import types
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support import depth, distribution

SUITE = Path(__file__).parent


def unmarked_values(parameters: list[object]) -> list[object]:
    return [each.values[0] for each in parameters if not each.marks]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("at", "expected", "of"), [(0.2, 2, 10), (0.01, 1, 10), (1, 10, 10), (2, 20, 20)])
def test_seeds_that_a_depth_takes(monkeypatch: pytest.MonkeyPatch, at: float, expected: int, of: int) -> None:
    monkeypatch.setattr(depth, "DEPTH", at)
    seeds = depth.seeds(10)
    assert unmarked_values(seeds) == list(range(expected))
    assert len(seeds) == of, "the others are told as deselected"


def test_all_but_the_first_cases_are_deep() -> None:
    assert unmarked_values(depth.first(2, ["a", "b", "c"])) == ["a", "b"]
    assert [each.values for each in depth.first(1, [("a", 1), ("b", 2)])] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(("at", "left"), [(0.5, 1), (1, 0)])
@pytest.mark.parametrize("mark", [depth.deep, depth.java.needs_kafka], ids=["deep", "needs Kafka"])
def test_what_is_deep_is_left_out(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    mark: pytest.MarkDecorator,
    at: float,
    left: int,
) -> None:
    monkeypatch.setattr(depth, "DEPTH", at)
    item = pytest.Function.from_parent(request.node.parent, name="one", callobj=lambda: None)
    item.add_marker(mark)
    items: list[pytest.Item] = [item]
    assert len(depth.leave_out(items)) == left
    assert len(items) == 1 - left


def cases(
    request: pytest.FixtureRequest, indices: Iterable[dict[str, int]], *marks: pytest.MarkDecorator
) -> list[pytest.Item]:
    """Return items of one test, in random order."""
    items: list[pytest.Item] = []
    for n, each in enumerate(indices):
        item = pytest.Function.from_parent(request.node.parent, name=f"test[{n}]", callobj=lambda: None)
        item.callspec = types.SimpleNamespace(indices=each)  # type: ignore[attr-defined]
        for mark in marks:
            item.add_marker(mark)
        items.append(item)
    random.shuffle(items)
    return items


@pytest.mark.parametrize("count", [7, 8, 9, 100])
def test_of_many_cases_some_are_taken_all_over(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    items = cases(request, ({"one": n} for n in range(count)))
    monkeypatch.setattr(depth, "DEPTH", 0.5)
    assert len(depth.leave_out(items)) == max(count - 8, 0)
    chosen = sorted(item.callspec.indices["one"] for item in items)  # type: ignore[attr-defined]
    assert chosen[0] == 0
    assert max(after - before for before, after in itertools.pairwise(chosen)) <= -(-count // 8)


def test_where_some_are_deep_all_others_are_taken(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = cases(request, ({"one": n} for n in range(20)))
    items[0].add_marker(depth.deep)
    monkeypatch.setattr(depth, "DEPTH", 0.5)
    assert len(depth.leave_out(items)) == 1


def test_of_a_sample_each_value_is_taken_before_any_again(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    indices = ({"one": one, "other": other} for one, other in itertools.product(range(3), range(4)))
    items = cases(request, indices, depth.sample(4))
    monkeypatch.setattr(depth, "DEPTH", 1)
    assert depth.leave_out(items) == []
    monkeypatch.setattr(depth, "DEPTH", 0.5)
    assert len(depth.leave_out(items)) == 8
    chosen = sorted(tuple(item.callspec.indices.values()) for item in items)  # type: ignore[attr-defined]
    assert chosen == [(0, 0), (0, 1), (1, 1), (2, 2)]


TRANSCRIPTS = "millstream/kafka_tools/test_transcripts.py"


def test_the_files_that_are_weighed_are_there() -> None:
    named = {*distribution.SECONDS, *distribution.SHARDS, *distribution.APART, *distribution.WAITING} - {
        distribution.ZOOKEEPER_GROUP
    }
    assert [name for name in named if not (distribution.TESTS / name).exists()] == []


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/suite/test_depth.py::test_one[a::b-c@d]", "suite/test_depth.py"),
        ("tests/plugins/spark/test_sink.py::test_one", "spark"),
        ("tests/faults/test_model.py::test_histories[0]", "faults/test_model.py#1"),
        (f"tests/{TRANSCRIPTS}::test_ours[topics]", TRANSCRIPTS),
        (f"tests/{TRANSCRIPTS}::test_ours_on_apache_kafka[topics]", f"{TRANSCRIPTS}#apart"),
    ],
)
def test_the_group_of_a_test(nodeid: str, name: str) -> None:
    assert distribution.group(nodeid) == name


@depth.deep
def test_a_group_stays_in_one_worker() -> None:
    """Workers that shared a group would each start its Spark or its broker.

    The options are those of `make test`.
    """
    spark = SUITE.parent / "plugins/spark"
    options = ("-n", "2", "--dist", "loadscope", "--no-loadscope-reorder", "-v", "-p", "no:cacheprovider")
    output = subprocess.run(
        [sys.executable, "-m", "pytest", *options, spark / "test_options.py", spark / "test_planning.py"],
        capture_output=True,
        text=True,
        cwd=SUITE.parent.parent,
        timeout=300,
    ).stdout
    ran = re.findall(r"^\[(gw\d)\] .*PASSED (\S+?)::", output, re.MULTILINE)
    assert len({file for _, file in ran}) == 2, output
    assert len({worker for worker, _ in ran}) == 1, output
