"""Tests of which followers must start over after compaction removed deletions and markers, and of what is
kept for each follower.
"""

from __future__ import annotations

import dataclasses

import pytest

from logd.replication import Divergence, Fetch, Follower, Leader, LeaderSettings, Truncate
from logd.replication.divergence import NOTHING_STAYS
from logd.replication.progress import NEVER_MS
from tests.faults.replication.controller import PartitionImage
from tests.faults.replication.memory_log import Batch, MemoryLog

LAG_MS = 10_000
IMAGE = PartitionImage(replicas=(1, 2, 3), isr=(1, 3), leader=1, leader_epoch=1, partition_epoch=7)
LONG_AFTER_MS = 10 * LAG_MS


class Compacted:
    """Leader 1 of a log that ends at 100. Broker 3 has all of it, broker 2 was away."""

    def __init__(self, *, removal_offset: int = 0, log_start_offset: int = 0) -> None:
        self.log = MemoryLog()
        self.log.begin_epoch(1)
        for number in range(100):
            self.log.append(Batch(0, 1, (number,)))
        if log_start_offset:
            self.log.delete_before(log_start_offset)
        self.log.removal_offset = removal_offset
        self.registered = {1: 101, 2: 102, 3: 103}
        self.last_fetch_ms = {2: LONG_AFTER_MS, 3: LONG_AFTER_MS}
        self.leader = self.made(IMAGE)
        self.fetch(3, 100)
        assert self.leader.high_watermark == 100

    def made(self, image: PartitionImage) -> Leader:
        return Leader(
            self.log,
            image,
            broker_id=1,
            brokers=self.registered.get,
            high_watermark=0,
            now_ms=0,
            settings=LeaderSettings(replica_lag_time_max_ms=LAG_MS),
        )

    def fetch(self, follower: int, offset: int, *, epoch: int = 1) -> Divergence | None:
        return self.leader.fetched(
            follower,
            offset,
            1 if offset else -1,
            LONG_AFTER_MS,
            current_leader_epoch=epoch,
            broker_epoch=self.registered[follower],
        )

    def removable_to(self, now_ms: int = LONG_AFTER_MS) -> int:
        return self.leader.removable_to(now_ms, lambda broker: self.last_fetch_ms.get(broker, NEVER_MS))

    def remove(self, offset: int) -> None:
        """Compaction removes a deletion just before this offset."""
        self.log.removal_offset = max(self.log.removal_offset, offset)
        self.leader.removed(offset)


ANEW = Divergence(NOTHING_STAYS, 0)


# Followers that start over


def test_a_follower_before_what_was_removed_begins_anew() -> None:
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 49) == ANEW
    assert led.leader.progress(2).log_end_offset == -1, "it does not count"  # type: ignore[union-attr]
    assert led.fetch(2, 50) is None


def test_where_nothing_was_removed_everybody_goes_on() -> None:
    led = Compacted()
    assert led.fetch(2, 1) is None


def test_who_copies_from_the_start_goes_on() -> None:
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    assert led.fetch(2, 20) is None
    led = Compacted(removal_offset=50, log_start_offset=10)
    assert led.fetch(2, 20) == Divergence(NOTHING_STAYS, 10)
    assert led.fetch(2, 10) is None
    assert led.fetch(2, 20) is None


def test_in_sync_replicas_have_all_that_is_committed() -> None:
    """Replicas in sync keep their log, even if the removal offset is too large, as one that another broker
    wrote may be. Otherwise a log that is needed would be dropped.
    """
    led = Compacted(removal_offset=1000)
    assert led.fetch(3, 100) is None
    assert led.fetch(3, 99) == ANEW, "it has lost something that is committed"


def test_a_copy_that_was_not_waited_for_begins_anew() -> None:
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    assert led.fetch(2, 20) is None
    led.remove(15)
    assert led.fetch(2, 25) is None, "it had that one"
    led.remove(30)
    assert led.fetch(2, 25) == ANEW
    assert led.fetch(2, 0) is None
    assert led.fetch(2, 25) is None, "nothing was removed since"


def test_a_smaller_offset_that_is_removed_later_counts_as_well() -> None:
    """Removals below the highest one so far count as well. A marker stays as long as its transaction's
    records, so removed offsets do not always rise.
    """
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    led.remove(30)
    assert led.log.removal_offset == 50
    assert led.fetch(2, 20) == ANEW


def test_a_copy_that_went_back_lacks_what_it_had() -> None:
    """Followers that went back start over if they lack something removed. A power loss took the end of the
    log, from which records were removed after the follower had copied them.
    """
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    assert led.fetch(2, 40) is None
    led.remove(40)
    assert led.fetch(2, 39) == ANEW


def test_a_copy_goes_on_in_the_next_leader_epoch_of_the_same_broker() -> None:
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    before = led.leader
    led.log.begin_epoch(2)
    led.leader = led.made(dataclasses.replace(IMAGE, leader_epoch=2))
    assert led.fetch(2, 20, epoch=2) == ANEW
    led.leader.succeed(before)
    assert led.fetch(2, 20, epoch=2) is None


def test_with_another_leader_a_copy_begins_anew() -> None:
    """Followers that lag start over under another leader. The new leader does not know what the previous one
    removed and when, and its own removals differ.
    """
    led = Compacted(removal_offset=50)
    assert led.fetch(2, 0) is None
    before = led.leader
    led.log.begin_epoch(3)
    led.leader = led.made(dataclasses.replace(IMAGE, leader_epoch=3))
    with pytest.raises(AssertionError):
        led.leader.succeed(before)
    assert led.fetch(2, 20, epoch=3) == ANEW


# What is kept


def test_nothing_is_removed_above_a_follower_that_copies() -> None:
    led = Compacted(removal_offset=50)
    assert led.removable_to() == 100
    led.fetch(2, 0)
    assert led.removable_to() == 0
    led.fetch(2, 20)
    assert led.removable_to() == 20
    led.fetch(2, 100)
    assert led.removable_to() == 100


def test_who_is_away_is_not_waited_for() -> None:
    led = Compacted()
    led.fetch(2, 20)
    assert led.removable_to(LONG_AFTER_MS + LAG_MS) == 20
    assert led.removable_to(LONG_AFTER_MS + LAG_MS + 1) == 100
    del led.registered[2]
    assert led.removable_to() == 100


def test_a_session_that_says_nothing_of_the_partition_is_a_fetch() -> None:
    """Fetches in a session that leave the partition out count as fetches, for example if a throttle lets no
    records through.
    """
    led = Compacted()
    led.fetch(2, 20)
    led.last_fetch_ms[2] = LONG_AFTER_MS + LAG_MS
    assert led.removable_to(LONG_AFTER_MS + 2 * LAG_MS) == 20


def test_a_new_leader_waits_until_it_can_know_where_they_are() -> None:
    led = Compacted(log_start_offset=10)
    assert led.removable_to(LAG_MS) == 10
    assert led.removable_to(LAG_MS + 1) == 100, "it has not fetched in this leader epoch"


# The follower


def test_a_follower_that_is_told_to_drops_its_log() -> None:
    log = MemoryLog()
    log.begin_epoch(1)
    log.append(Batch(0, 1, ("a", "b", "c")))
    follower = Follower(log, leader=1, leader_epoch=1, high_watermark=3)
    fetch = follower.next
    assert fetch == Fetch(3, 1, 1)
    assert not follower.answered(fetch, 0, (NOTHING_STAYS, 1))
    assert follower.next == Truncate(1, fully=True, misses_removals=True)
    log.truncate(follower.next)
    assert follower.truncated(), "it had committed records, and copies them again"
    assert follower.next == Fetch(1, -1, 1)
    assert follower.high_watermark == 1
