"""The checker catches what it is there for: each bug of `planted` within some histories."""

from __future__ import annotations

import pytest

from tests.faults.cluster_simulation.planted import BUGS, Bug
from tests.faults.cluster_simulation.playing import playing
from tests.support import depth

HISTORIES_MAX = 80


@depth.deep
@pytest.mark.parametrize("name", depth.first(2, BUGS))
def test_bug_is_caught(name: str) -> None:
    """And it is the bug that was caught: the same history without it is well."""
    bug = BUGS[name]
    seed = first_caught(bug)
    assert seed is not None, f"{name}: not caught"
    with playing(seed, bug.profile) as simulation:
        violations = simulation.run().violations
    assert not violations, f"{name}: seed {seed} without it: {violations[0]}"
    assert not simulation.is_void, f"{name}: seed {seed} without it is not judged"


def first_caught(bug: Bug) -> int | None:
    """Return a seed of a history in which the checker reports what it should; try the likely one first."""
    for seed in dict.fromkeys([bug.seed, *range(HISTORIES_MAX)]):
        with playing(seed, bug.profile) as simulation, bug.plant():
            if any(violation.kind in bug.kinds for violation in simulation.run().violations):
                return seed
    return None
