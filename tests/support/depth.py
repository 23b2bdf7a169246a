"""How deep the tests go: `MILLSTREAM_DEPTH`, read here and nowhere else.

At 1, the default and what `make test-all` takes, everything runs. Less is a sample, as `make test` takes it:
fewer examples, histories and seeds, without the tests that are `deep` or need Apache Kafka's own classes.
More than 1 goes on for longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import java

DEPTH = float(os.environ.get("MILLSTREAM_DEPTH") or 1)
EXAMPLES = 100
"""Examples of a Hypothesis test that names no number, at depth 1."""

CASES = 8
"""Cases of a parametrized test that a lower depth runs, if the test names no number."""

deep = pytest.mark.deep
"""Marks what is left out at a depth below 1."""


def sample(count: int) -> pytest.MarkDecorator:
    """Marks a parametrized test of which a lower depth keeps so many cases, instead of `CASES`.

    Of several parameters it takes the first values of all, the second values of all, and so on, so that as
    many values as can be are among them.
    """
    return pytest.mark.sample(count)


ONE_IN = 1 if os.environ.get("REWRITE") or DEPTH > 1 else 4
"""Java is asked about one case in this number, while our answers are compared with all its recorded ones.

The recorded answers change only with Kafka's version. With REWRITE Java is asked about all cases, and its
answers are recorded again.
"""


def times(count: int) -> int:
    """Return how many examples or repetitions there are at this depth; `count` are at depth 1."""
    return max(1, round(count * DEPTH))


def seeds(count: int) -> list[Any]:
    """Parameters 0, 1, …: `count` at depth 1. Those that a lower depth leaves out are `deep`."""
    count_here = times(count)
    return first(count_here, range(max(count, count_here)))


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters, a tuple for a test with several arguments; all but the first few are `deep`."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=[deep] if n >= count else [])
        for n, case in enumerate(cases)
    ]


def set_examples() -> None:
    """For all Hypothesis tests: before their modules are imported.

    No example has a deadline, and none is too slow to be made: on a machine that is busy elsewhere any may
    take longer than Hypothesis has patience. Up to depth 1 they are the same in every run, so that what is
    green stays green; more depth looks for new ones.
    """
    settings.register_profile(
        "millstream",
        deadline=None,
        derandomize=DEPTH <= 1,
        print_blob=True,
        max_examples=times(EXAMPLES),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("millstream")


def leave_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove the tests that are not for this depth from the collected ones, and return them."""
    if DEPTH >= 1:
        return []
    left = {item for item in items if is_deep(item)} | _beyond_samples(items)
    remaining = [item for item in items if item not in left]
    out = [item for item in items if item in left]
    items[:] = remaining
    return out


def _beyond_samples(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the cases of tests beyond the number of their `sample`, or beyond `CASES`.

    Where some cases are `deep` (`seeds`, `first`) the test has said by them how many stay.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    beyond: set[pytest.Item] = set()
    for of_one in cases.values():
        mark = of_one[0].get_closest_marker("sample")
        of_one.sort(key=_case_rank)
        if mark is not None:
            beyond.update(of_one[mark.args[0] :])
        elif len(of_one) > CASES and not any(is_deep(item) for item in of_one):
            beyond.update(set(of_one) - {of_one[n * len(of_one) // CASES] for n in range(CASES)})
    return beyond


def _case_rank(item: Any) -> tuple[int, ...]:
    indices = tuple(item.callspec.indices.values())
    return max(indices) - min(indices), *indices


def is_deep(item: pytest.Item) -> bool:
    """Return True if a test runs at depth 1 only."""
    return item.get_closest_marker("deep") is not None or any(
        str(mark.kwargs.get("reason", "")).startswith(java.NEEDS) for mark in item.iter_markers("skipif")
    )
