"""Random histories of a whole cluster: `simulation` says what may go wrong in them, and what is real.

A failing seed and its profile are in the message; what happened in it tells
`python -m tests.faults.cluster_simulation SEED --profile …`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import pytest

from logd.broker.partition.partition import Partition
from logd.broker.transactions import markers
from logd.storage import ProducerState
from logd.storage.producers.producer import MarkerMemo
from tests.faults.cluster_simulation.playing import playing
from tests.faults.cluster_simulation.profile import PROFILES
from tests.support import depth, histories

BUNDLES = 4
"""`make histories` plays twenty times as many."""
HISTORIES = 8
"""In each bundle."""
IN_TURN = ("everything", "haste", "renewal", "twins")
ROOT = Path(__file__).parents[3]
Noting = Callable[[str, object], None]


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES))
def test_histories(bundle: int, record_property: Noting) -> None:
    play_bundle(bundle, IN_TURN, record_property)


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES // 4))
def test_controllers_are_deposed(bundle: int, record_property: Noting) -> None:
    play_bundle(bundle, ("deposed", "stale"), record_property)


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES // 4))
def test_partitions_are_moved(bundle: int, record_property: Noting) -> None:
    play_bundle(bundle, ("moves",), record_property)


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES // 4))
def test_requests_of_brokers_arrive_late(bundle: int, record_property: Noting) -> None:
    play_bundle(bundle, ("late",), record_property)


def play_bundle(bundle: int, profiles: Sequence[str], note: Noting) -> None:
    """Play the bundle's seeds, with the profiles in turn."""
    counts = Counter({histories.HISTORIES: HISTORIES})
    for seed in range(bundle * HISTORIES, (bundle + 1) * HISTORIES):
        name = profiles[seed % len(profiles)]
        with playing(seed, PROFILES[name]) as simulation:
            checker = simulation.run()
        assert not checker.violations, f"seed {seed} --profile {name}: {checker.violations[0]}"
        counts["of them void"] += simulation.is_void
        counts["s played"] += round(simulation.loop.time())
        counts["faults"] += sum(simulation.faults.happened.values())
        counts["records acknowledged"] += len(checker.acknowledged)
    histories.played(note, "whole brokers and clients", counts)
    assert counts["of them void"] <= HISTORIES // 2


@depth.deep
@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        pytest.param(87, "deposed", id="a follower that hears of a topic before its leader does"),
    ],
)
def test_histories_that_were_found(seed: int, profile: str) -> None:
    with playing(seed, PROFILES[profile]) as simulation:
        assert not simulation.run().violations


def test_histories_come_to_something() -> None:
    """Else nothing would be tested."""
    happened: Counter[str] = Counter()
    for seed in range(1_000, 1_003):
        with playing(seed) as simulation:
            checker = simulation.run()
            happened["faults"] += sum(simulation.faults.happened.values())
            happened["acknowledged"] += len(checker.acknowledged)
            happened["transactions"] += sum(one.is_commit_asked for one in checker.transactions)
            happened["read"] += sum(len(reader.handed) for reader in checker.readers.values())
            happened["offsets committed"] += len(checker.committed)
            happened["elections"] += sum("epoch 1" in line for line in simulation.trace)
    names = ("faults", "acknowledged", "transactions", "read", "offsets committed", "elections")
    assert all(happened[name] >= 3 for name in names), happened


@depth.deep
def test_servers_of_zookeeper_are_late() -> None:
    with playing(1_000, PROFILES["stale"]) as simulation:
        simulation.run()
    assert simulation.zookeeper.answered_late >= 20


@depth.deep
def test_moves_come_to_something() -> None:
    """Partitions move: some have been on all four brokers."""
    in_sync: dict[tuple[int, str], set[str]] = {}
    starts = 0
    for seed in range(1_000, 1_003):
        with playing(seed, PROFILES["moves"]) as simulation:
            simulation.run()
        starts += sum("begun" in line for line in simulation.trace)
        for line in simulation.trace:
            if match := re.search(r"(\S+): leader .* in sync \((.*)\)", line):
                in_sync.setdefault((seed, match[1]), set()).update(re.findall(r"\d", match[2]))
    assert sum(ids == set("1234") for ids in in_sync.values()) >= 3, in_sync
    assert starts >= 3


@depth.deep
def test_late_requests_come_to_something() -> None:
    """Markers come after the leader's term, and again while a transaction is open."""
    late: Counter[str] = Counter()
    check, repeated = markers.check_leader_epoch, ProducerState.repeated_marker

    def checked(partition: Partition, epoch: int) -> None:
        late["of an earlier term"] += epoch < partition.leader_epoch
        check(partition, epoch)

    def looked_up(state: ProducerState, producer_id: int, *facts: int) -> MarkerMemo | None:
        memo = repeated(state, producer_id, *facts)
        late["again"] += memo is not None and state.has_open_transaction(producer_id)
        return memo

    with (
        mock.patch.object(markers, "check_leader_epoch", checked),
        mock.patch.object(ProducerState, "repeated_marker", looked_up),
    ):
        for seed in range(1_000, 1_020):
            with playing(seed, PROFILES["late"]) as simulation:
                simulation.run()
            if late["of an earlier term"] and late["again"]:
                return
    raise AssertionError(late)


def digest(seed: int, hash_seed: str) -> str:
    """Return the digest of a history in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.cluster_simulation", str(seed), "--digest"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@depth.deep
def test_a_seed_is_a_history() -> None:
    """Hashing and addresses of a process make no difference to a history."""
    first = digest(7, "1")
    assert len(first.strip()) == 64
    assert digest(7, "2") == first
