"""The checker catches what it is there for: each bug of `planted` within some histories."""

from __future__ import annotations

import pytest

from tests.faults.cluster_simulation.planted import BUGS
from tests.faults.cluster_simulation.playing import playing
from tests.support import depth

HISTORIES_MAX = 80


@depth.deep
@pytest.mark.parametrize("name", depth.first(2, BUGS))
def test_bug_is_caught(name: str) -> None:
    bug = BUGS[name]
    for seed in range(HISTORIES_MAX):
        with playing(seed, bug.profile) as simulation, bug.plant():
            if any(violation.kind in bug.kinds for violation in simulation.run().violations):
                return
    pytest.fail(f"{name}: not caught")
