"""The checker catches what it is there for: each bug of `planted` within some histories."""

from __future__ import annotations

import pytest

from tests.faults.replication.checker import Kind
from tests.faults.replication.planted import BUGS
from tests.faults.replication.simulation import play, shrink
from tests.support import depth

HISTORIES_MAX = 3_000
RARE = {"leader takes fetches of any epoch", "takes in who has lost something since"}
"""Bugs that other checks mostly cover: the last record's epoch, and the leader's broker epochs."""


@depth.deep
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[depth.deep] if name in RARE else []) for name in BUGS]
)
def test_bug_is_caught(name: str) -> None:
    """And it is the bug that was caught: the same history without it is well."""
    seed = first_caught(name)
    assert seed is not None, name
    assert not play(seed, BUGS[name].profile), f"{name}: seed {seed} without it"


def first_caught(name: str) -> int | None:
    bug = BUGS[name]
    for seed in range(HISTORIES_MAX):
        if any(violation.kind in bug.kinds for violation in play(seed, bug.profile, bug.rules)):
            return seed
    return None


@depth.deep
def test_clients_notice() -> None:
    """And not only those who see into the brokers."""
    noticed = {Kind.LOST_WRITE, Kind.DIRTY_READ, Kind.INCONSISTENT_OFFSET}
    for name in ("acknowledges before the ISR has it", "truncates by high watermark"):
        bug, kinds = BUGS[name], set[Kind]()
        for seed in range(100):
            kinds.update(violation.kind for violation in play(seed, bug.profile, bug.rules))
        assert kinds & noticed, name


def test_history_is_shrunk() -> None:
    name = "truncates by high watermark"
    bug, seed = BUGS[name], first_caught(name)
    assert seed is not None
    without = shrink(seed, bug.profile, bug.rules)
    assert without
    assert play(seed, bug.profile, bug.rules, without=without)
