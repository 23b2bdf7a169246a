"""Thousands of random histories of a replicated partition: `simulation` says what may go wrong in them.

A failing seed is in the message: `play(seed, profile, traced=True)` gives the history again, and
`shrink(seed, profile)` says which of its faults it can do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.faults.replication.checker import Kind
from tests.faults.replication.planted import ELECTIONS, HASTE
from tests.faults.replication.profile import Profile
from tests.faults.replication.simulation import Simulation, play
from tests.support import depth, histories

BUNDLES = 10
"""`make histories` plays twenty times as many."""
HISTORIES = 100
"""In each bundle."""
PROFILES = (None, HASTE, None, ELECTIONS)
"""In turn; None is a little of everything."""
UNCLEAN = Profile(unclean=6, storms=(3, 7))


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES))
def test_histories(bundle: int, record_property: Callable[[str, object], None]) -> None:
    profile = PROFILES[bundle % len(PROFILES)]
    counts = Counter({histories.HISTORIES: HISTORIES})
    for seed in range(bundle * HISTORIES, (bundle + 1) * HISTORIES):
        simulation = Simulation(seed, profile)
        checker = simulation.run()
        assert not checker.violations, f"seed {seed}, {profile}: {checker.violations[0]}"
        counts["of them void"] += simulation.is_void
        counts["s played"] += simulation.now_ms // 1000
        counts["faults"] += simulation.faults.count
        counts["records acknowledged"] += len(checker.acknowledged)
    histories.played(record_property, "one partition's replication", counts)
    assert counts["of them void"] <= HISTORIES // 10


@pytest.mark.parametrize("bundle", depth.seeds(1))
def test_unclean_elections_lose_and_never_diverge(bundle: int) -> None:
    lost = 0
    for seed in range(bundle * HISTORIES, (bundle + 1) * HISTORIES):
        simulation = Simulation(seed, UNCLEAN)
        checker = simulation.run()
        assert not checker.violations, f"seed {seed}, {UNCLEAN}: {checker.violations[0]}"
        lost += checker.is_unclean and not simulation.is_void and bool(lost_writes(simulation))
    assert lost


def lost_writes(simulation: Simulation) -> list[object]:
    checker, partition = simulation.checker, simulation.controller.image.partition
    log = {value for _, _, value in simulation.hosts[partition.leader].node.log.records()}
    return [
        value
        for value, (offset, acks_all) in checker.acknowledged.items()
        if acks_all and offset >= checker.deleted_before and value not in log
    ]


def test_histories_come_to_something() -> None:
    """Else nothing would be tested."""
    words: Counter[str] = Counter()
    for seed in range(40):
        simulation = Simulation(seed, traced=True)
        checker = simulation.run()
        assert simulation.trace is not None
        for line in simulation.trace:
            words.update(set(line.replace(":", " ").split()))
        words["acknowledged to acks=all"] += any(acks_all for _, acks_all in checker.acknowledged.values())
        words["read"] += bool(checker.read)
        words["to the end"] += not simulation.is_void
    happened = {
        "acknowledged to acks=all",
        "read",
        "to the end",
        "truncates",
        "proposes",
        "elected",
        "killed",
        "power",
        "still",
        "parted",
        "ended",
        "deletes",
        "reassigned",
    }
    assert all(words[word] >= 3 for word in happened), words


def test_a_seed_is_a_history() -> None:
    first, again = Simulation(7, HASTE, traced=True), Simulation(7, HASTE, traced=True)
    assert first.run().acknowledged == again.run().acknowledged
    assert first.trace == again.trace


def test_one_replica_is_committed_at_once() -> None:
    for seed in range(20):
        assert not play(seed, Profile(brokers=(1,), power_loss=0))


def test_what_is_stuck_is_said() -> None:
    """Partitions whose replicas never get in sync count as stuck."""
    simulation = Simulation(3, Profile(brokers=(3,)))
    simulation.settings.min_insync_replicas = 2
    simulation.send = lambda *_: None  # type: ignore[method-assign]
    assert Kind.STUCK in {violation.kind for violation in simulation.run().violations}
