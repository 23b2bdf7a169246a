"""Random histories of a compacted partition, and the bugs that they find: see `compaction`."""

from __future__ import annotations

import pytest

from logd.replication import Leader
from tests.faults.replication.compaction import World
from tests.faults.replication.node import Rules
from tests.support.depth import DEPTH, deep

HISTORIES = max(int(400 * DEPTH), 60)
HISTORIES_MAX = 3_000


class GoesOn(Leader):
    """Whatever is gone of the log: what Apache Kafka's leader does."""

    def must_copy_again(self, broker_id: int, offset: int) -> bool:
        return False


class ForgetsWhoWasNotWaitedFor(Leader):
    """A follower that began to copy the log goes on, though it was away for a while."""

    def removed(self, offset: int) -> None:
        pass


BUGS = {
    "a follower goes on": GoesOn,
    "who was not waited for goes on": ForgetsWhoWasNotWaitedFor,
}


def test_no_deleted_key_comes_back_and_all_get_in_sync() -> None:
    anew = 0
    for seed in range(HISTORIES):
        world = World(seed)
        assert not world.run(), f"seed {seed}"
        anew += world.anew
    assert anew, "no replica had to begin anew: the histories are of no use"


@deep
@pytest.mark.parametrize("name", list(BUGS))
def test_bug_is_caught(name: str) -> None:
    """And it is the bug that was caught: the same history without it is well."""
    for seed in range(HISTORIES_MAX):
        if World(seed, Rules(leader=BUGS[name])).run():
            assert not World(seed).run(), f"seed {seed} without it"
            return
    pytest.fail(f"no history of {HISTORIES_MAX} shows it")
