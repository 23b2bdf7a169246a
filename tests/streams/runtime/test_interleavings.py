"""Any interleaving, crash point and rebalance gives the tables of one uninterrupted run; planted bugs do not.

`interleavings` has the fault model. A seed that failed: `-k 'seed-N'`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kafka_client import OffsetAndMetadata, TopicPartition
from streams.runtime.commit.guarantees import Commit
from tests.streams.support.interleaved import TABLES, WINDOWS, Work
from tests.streams.support.interleavings import Interleaving
from tests.streams.support.running import NewName, run
from tests.support import depth
from tests.support.logd_process import LogdProcess


def interleave(
    logd: LogdProcess, name: str, folder: Path, seed: int, guarantee: Any, work: Work = TABLES
) -> None:
    interleaving = Interleaving(logd.bootstrap, name, folder, seed, guarantee, work)
    try:
        run(interleaving.run)
    finally:
        print(*interleaving.happened, sep="\n")


@pytest.mark.parametrize("seed", depth.seeds(3))
@pytest.mark.parametrize("guarantee", depth.first(1, ["exactly_once_v2", "at_least_once"]))
def test_tables_are_those_of_one_run(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: Any, seed: int
) -> None:
    interleave(logd, new_name("interleaved"), tmp_path, seed, guarantee)


@depth.deep
@pytest.mark.parametrize("seed", depth.seeds(1))
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_windows_and_joins_are_those_of_one_run(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: Any, seed: int
) -> None:
    interleave(logd, new_name("interleaved"), tmp_path, seed, guarantee, WINDOWS)


def positions_of_now(commit: Commit) -> dict[TopicPartition, OffsetAndMetadata]:
    """Committed is where tasks are when a commit has been sent, not where they were when it was begun."""
    flushes = []
    for running, flush in commit.flushes:
        positions = {tp: queue.position for tp, queue in running.task.queues.items()}
        flushes.append((running, dataclasses.replace(flush, positions=positions)))
    return OFFSETS(dataclasses.replace(commit, flushes=flushes))


def without_offsets(commit: Commit) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return no offsets: the transaction has output and changelogs, but not the input positions."""
    return {}


OFFSETS = Commit.offsets
PLANTED: dict[str, tuple[type, str, Any]] = {
    "positions of now": (Commit, "offsets", positions_of_now),
    "without offsets": (Commit, "offsets", without_offsets),
}
SEEDS = 6


@depth.deep
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    monkeypatch.setattr(*PLANTED[bug])
    with pytest.raises(AssertionError):
        for seed in range(SEEDS):
            interleave(logd, new_name("planted"), tmp_path / str(seed), seed, "exactly_once_v2")
