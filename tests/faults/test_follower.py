"""Thousands of random histories of a leader's log and of a follower's, which copies it run by run.

There are random batches of all kinds, compaction with its gaps, retention, and segments that end. The leader
restarts in new leader epochs, and a new leader may lack some of the last one's records. The follower is
killed, loses its power, and falls behind the leader's log start offset. After each run the follower's bytes
are what was sent. Once it has caught up, its log is compared with the ledger of the leader's writes. A
failing seed is in the message.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.audit import audit
from tests.faults.bundle import play_bundle
from tests.faults.follower import Follower
from tests.faults.history import History
from tests.faults.ledger import COMPACTED, CONFIG, Ledger
from tests.support import depth

BUNDLES = 12
HISTORIES = 12
"""In each bundle."""
STEPS = 24


@depth.deep
@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES))
def test_histories(bundle: int, tmp_path: Path) -> None:
    play_bundle(play, bundle, HISTORIES, tmp_path)


@depth.deep
def test_histories_come_to_something(tmp_path: Path) -> None:
    """Else nothing would be compared."""
    followers = [play(seed, tmp_path / str(seed)) for seed in range(14)]
    assert any(len(follower.log.segments.row) > 2 for follower in followers)
    assert any(follower.log.reader.aborted(0, follower.log.log_end_offset) for follower in followers)
    assert any(len(follower.log.epochs.entries) > 1 for follower in followers)
    gaps = [len(follower.sent) and follower.log.log_end_offset - len(follower.sent) for follower in followers]
    assert max(gaps) > 10


def play(seed: int, folder: Path) -> Follower:
    """Play a history, and return the follower at its end."""
    rng = random.Random(seed)
    config = rng.choice((CONFIG, COMPACTED)).replaced(
        segment_bytes=rng.choice((2_000, 3_000, 6_000)),
        index_interval_bytes=rng.choice((0, 200, 4_096)),
        delete_retention_ms=rng.choice((0, 86_400_000)),
    )
    leader = Ledger(folder / "leader", seed, config)
    history = History(leader, rng)
    follower = Follower(leader, folder / "follower", rng)
    try:
        for number in range(STEPS):
            # After compaction, the batches that an election loses may be all that is left of a producer. No
            # log would know of the producer then.
            if rng.random() < 0.1 and not config.is_compacted:
                another_leader(leader, rng)
            history.step()
            follower.reconcile()
            step(follower, rng, folder / f"follower-{number}")
        follower.catch_up()
        follower.check_bytes()
        follower.check_answers()
        audit(leader, follower.log)
    finally:
        follower.let_go()
        leader.let_go()
    return follower


def another_leader(leader: Ledger, rng: random.Random) -> None:
    """Make the log end earlier, as an unclean election does, and begin a new epoch."""
    start, end = leader.log.log_start_offset, leader.log.log_end_offset
    leader.truncate(rng.randint(max(start, end - 12), end))
    leader.begin_epoch()


def step(follower: Follower, rng: random.Random, left: Path) -> None:
    """Let the follower do or suffer something at random."""
    way = rng.choice(("copy", "copy", "catch up", "flush", "checkpoint", "stop", "kill", "power loss"))
    if way == "copy":
        follower.copy()
    elif way == "catch up":
        follower.catch_up()
        audit(follower.leader, follower.log)
    elif way == "flush":
        follower.flush()
    elif way == "checkpoint":
        follower.checkpoint()
    elif way == "power loss":
        follower.lose_power(left)
        assert follower.log.log_end_offset >= follower.promised
    else:
        end = follower.log.log_end_offset
        follower.restart(clean=way == "stop")
        assert follower.log.log_end_offset == end, "a killed process loses nothing"
    follower.check_bytes()
