"""The cache of fetch sessions: who gets one, which is evicted, and what a session stores. Time is a number
here.
"""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.fetch import FetchPartition, PartitionFetched, ReceivedFetch
from logd.broker.fetching import fetch_sessions
from logd.broker.fetching.fetch_session import EPOCH_MAX, FetchSession
from logd.broker.fetching.fetch_sessions import EVICTION_MS, FetchSessions


def fetch_of(partition: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition, -1, offset, -1, -1, 1 << 20)


def request(
    session: int,
    epoch: int,
    *requested: FetchPartition,
    forgotten: list[int] | None = None,
) -> ReceivedFetch:
    topics = [("t", list(requested))] if requested else []
    forgotten_topics = [("t", forgotten)] if forgotten else []
    return ReceivedFetch(-1, 0, 1, 1, 0, session, epoch, topics, forgotten_topics, "", -1, None)  # type: ignore[arg-type]


class Cache(FetchSessions):
    """A session cache with ids from 1 on, and shorter calls."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots, itertools.count(1).__next__)

    def opened(self, size: int, now_ms: float, *, follower: bool = False) -> int:
        """Open a session of `size` partitions and return its id, or 0 without one."""
        requested = [("t", fetch_of(partition)) for partition in range(size)]
        session = self.open(requested, by_topic_ids=False, privileged=follower, now_ms=now_ms)
        return session.id if session is not None else 0

    def used(self, session_id: int, now_ms: float) -> FetchSession:
        """Make another request of a session, which changes nothing; return the session."""
        epoch = self._sessions[session_id].epoch
        session = self.next(request(session_id, epoch), by_topic_ids=False, now_ms=now_ms)
        assert session is not None
        return session

    @property
    def ids(self) -> set[int]:
        """The ids of all sessions."""
        return set(self._sessions)


def test_without_room_nobody_young_gives_way() -> None:
    cache = Cache(2)
    assert [cache.opened(1, 0), cache.opened(1, 0), cache.opened(100, EVICTION_MS)] == [1, 2, 0]
    assert Cache(0).opened(1, 0) == 0


def test_who_was_idle_longest_gives_way_to_anybody() -> None:
    cache = Cache(2)
    cache.opened(50, 0)
    cache.opened(50, 0)
    cache.used(1, 10)
    assert cache.opened(1, EVICTION_MS) == 0
    assert cache.opened(1, EVICTION_MS + 1) == 3
    assert cache.ids == {1, 3}
    statistics = cache.statistics()
    assert (statistics["sessions"], statistics["sessions_max"], statistics["evictions"]) == (2, 2, 1)
    assert statistics["partitions"] == 51 < statistics["partitions_max"]


def test_the_smallest_old_one_gives_way_to_a_larger_one() -> None:
    cache = Cache(3)
    for size in (5, 3, 4):
        cache.opened(size, 0)
    late = EVICTION_MS + 1
    for session in (1, 2, 3):
        cache.used(session, late)
    assert cache.opened(3, late) == 0, "not for one of the same size"
    assert cache.opened(4, late) == 4
    assert cache.ids == {1, 3, 4}
    assert cache.opened(4, late) == 0, "what is left is young or as large"


def test_a_follower_is_worth_more_than_a_consumer() -> None:
    cache = Cache(2)
    cache.opened(100, 0)
    follower = cache.opened(1, 0, follower=True)
    assert cache.opened(1000, 1) == 0
    other = cache.opened(1, 1, follower=True)
    assert cache.ids == {follower, other}, "even a young and large one of a consumer goes"
    assert cache.opened(9, 2, follower=True) == 0, "followers that are young stay"


def test_a_follower_that_says_all_anew_has_no_session_from_before() -> None:
    """Followers that open a full session lose their older one, whose requests name only changes."""
    cache = Cache(9)
    requested = [("t", fetch_of(0))]
    for _ in range(2):
        for follower in (7, 8):
            cache.open(requested, by_topic_ids=False, privileged=True, now_ms=0, follower=follower)
    consumer = cache.opened(1, 0)
    assert cache.ids == {3, 4, consumer}
    cache.close_of(7)
    cache.close_of(9)
    assert cache.ids == {4, consumer}
    with pytest.raises(KafkaError) as refused:
        cache.next(request(3, 1), by_topic_ids=False, now_ms=0)
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_sizes_count_as_of_the_last_request() -> None:
    cache = Cache(2)
    cache.opened(2, 0)
    cache.opened(3, 0)
    late = EVICTION_MS + 1
    grown = request(1, 1, fetch_of(7), fetch_of(8))
    assert cache.next(grown, by_topic_ids=False, now_ms=late) is not None
    cache.used(2, late)
    assert cache.statistics()["partitions"] == 7
    cache.opened(4, late)
    assert cache.ids == {1, 3}


def test_epochs_are_strict_and_wrap() -> None:
    cache = Cache(1)
    session_id = cache.opened(1, 0)
    with pytest.raises(KafkaError) as wrong:
        cache.next(request(session_id, 2), by_topic_ids=False, now_ms=0)
    assert wrong.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session = cache.used(session_id, 0)
    assert session.epoch == 2
    session.epoch = EPOCH_MAX
    assert cache.used(session_id, 0).epoch == 1


def test_what_is_refused_changes_nothing() -> None:
    cache = Cache(1)
    session_id = cache.opened(1, 0)
    with pytest.raises(KafkaError) as unknown:
        cache.next(request(session_id + 1, 1), by_topic_ids=False, now_ms=0)
    assert unknown.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    with pytest.raises(KafkaError) as other_ids:
        cache.next(request(session_id, 1, fetch_of(9)), by_topic_ids=True, now_ms=0)
    assert other_ids.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert len(cache.used(session_id, 0).partitions) == 1


def test_a_session_with_nothing_left_is_gone() -> None:
    cache = Cache(1)
    session_id = cache.opened(2, 0)
    assert cache.next(request(session_id, 1, forgotten=[0, 1, 5]), by_topic_ids=False, now_ms=0) is None
    assert len(cache) == 0
    assert cache.statistics()["partitions"] == 0


def test_who_gave_records_goes_to_the_end() -> None:
    cache = Cache(1)
    session = cache.used(cache.opened(3, 0), 0)
    session.note_sent("t", PartitionFetched(0, records=b"some"))
    session.note_sent("t", PartitionFetched(1))
    assert [each.partition for _, each, _ in session.in_turn()] == [1, 2, 0]


def test_all_sessions_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 10)
    cache = Cache(5)
    assert cache.opened(11, 0) == 0
    session_id = cache.opened(9, 0)
    assert cache.opened(2, 0) == 0
    with pytest.raises(KafkaError) as full:
        cache.next(request(session_id, 1, fetch_of(20), fetch_of(21)), by_topic_ids=False, now_ms=0)
    assert full.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.opened(10, 0)


def test_a_partition_costs_little() -> None:
    cache = Cache(1)
    partitions = 10_000
    tracemalloc.start()
    try:
        requested = [
            ("t", fetch_of(partition, offset=1_000_000 + partition)) for partition in range(partitions)
        ]
        cache.open(requested, by_topic_ids=False, privileged=False, now_ms=0)
        del requested
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held_bytes / partitions < 600
