"""Tests of a follower that scripts do not cover: responses that do not fit, and logs that have nothing in
common.
"""

from __future__ import annotations

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.replication import Fetch, Follower, Standby, Truncate
from tests.faults.replication.memory_log import Batch, MemoryLog


def log_of(*epochs: int, start: int = 0) -> MemoryLog:
    """Return a log from `start` on, with one record in each of these leader epochs."""
    log = MemoryLog()
    log.truncate(Truncate(start, fully=True))
    for epoch in epochs:
        log.append(Batch(0, epoch, (f"{log.log_end_offset}/{epoch}",)))
    return log


def following(log: MemoryLog, high_watermark: int = 0) -> Follower:
    return Follower(log, leader=1, leader_epoch=9, high_watermark=high_watermark)


def next_fetch(follower: Follower) -> Fetch:
    assert isinstance(follower.next, Fetch)
    return follower.next


def test_where_to_fetch() -> None:
    assert following(log_of()).next == Fetch(0, -1, 9)
    assert following(log_of(1, 1, 4)).next == Fetch(3, 4, 9)
    emptied = log_of(1, 4)
    emptied.delete_before(2)
    assert following(emptied).next == Truncate(2)


def test_high_watermark_only_rises_and_stays_in_the_log() -> None:
    log = log_of(1, 1)
    follower = following(log)
    assert follower.appended(7)
    assert follower.high_watermark == 2
    assert not follower.appended(1)
    assert follower.high_watermark == 2
    assert following(log_of(1), high_watermark=5).high_watermark == 1


def test_high_watermark_is_not_where_it_truncates() -> None:
    """KIP-101."""
    assert following(log_of(1, 1, 1), high_watermark=1).next == Fetch(3, 1, 9)


def test_an_answer_to_another_question_is_passed_over() -> None:
    log = log_of(1)
    follower = following(log)
    before = next_fetch(follower)
    log.append(Batch(0, 1, ("b",)))
    follower.appended(0)
    now = next_fetch(follower)
    assert now != before
    assert not follower.answered(before)
    assert not follower.answered(before, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert not follower.answered(before, diverging=(1, 0))
    assert follower.next == now
    assert follower.answered(now)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_what_passes_is_asked_again(code: ErrorCode) -> None:
    follower = following(log_of(1))
    before = next_fetch(follower)
    assert not follower.answered(before, code)
    assert follower.next == before


def test_fenced_it_waits_for_the_image() -> None:
    follower = following(log_of(1))
    assert not follower.answered(next_fetch(follower), ErrorCode.FENCED_LEADER_EPOCH)
    assert follower.next is Standby.IMAGE


@pytest.mark.parametrize(
    ("start", "end", "next_"),
    [
        (0, 2, Truncate(2)),
        (7, 9, Truncate(7, fully=True)),
        (0, 9, Fetch(3, 1, 9)),
        (3, 9, Fetch(3, 1, 9)),
    ],
)
def test_leader_offsets(start: int, end: int, next_: object) -> None:
    follower = following(log_of(1, 1, 1))
    follower.answered(next_fetch(follower), ErrorCode.OFFSET_OUT_OF_RANGE)
    assert follower.next is Standby.LEADER_OFFSETS
    follower.leader_offsets(start, end)
    assert follower.next == next_
    follower.leader_offsets(0, 0)
    assert follower.next == next_


def test_leader_that_ends_before_the_own_log_begins() -> None:
    follower = following(log_of(1, 1, start=5), high_watermark=6)
    follower.answered(next_fetch(follower), ErrorCode.OFFSET_OUT_OF_RANGE)
    follower.leader_offsets(0, 3)
    assert follower.next == Truncate(3, fully=True)


@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        ((4, 4), 4),  # the same epoch, less of it
        ((4, 3), 3),
        ((3, 9), 2),  # it knows an epoch that is not here: all after the one before that goes
        ((2, 1), 1),
        ((1, 7), 1),
        ((0, 0), 0),  # nothing in common
    ],
)
def test_truncation(diverging: tuple[int, int], offset: int) -> None:
    log = log_of(1, 2, 4, 4, 4)
    follower = following(log)
    assert not follower.answered(next_fetch(follower), diverging=diverging)
    assert follower.next == Truncate(offset)
    log.truncate(Truncate(offset))
    follower.truncated()
    assert isinstance(follower.next, Fetch)


def test_a_leader_that_contradicts_itself_truncates_nothing() -> None:
    follower = following(log_of(1, 2))
    before = next_fetch(follower)
    assert not follower.answered(before, diverging=(2, 5))
    assert follower.next == before


def test_truncation_of_what_is_committed_is_said() -> None:
    log = log_of(1, 1, 1)
    follower = following(log, high_watermark=2)
    follower.answered(next_fetch(follower), diverging=(1, 2))
    log.truncate(Truncate(2))
    assert not follower.truncated()
    follower.answered(next_fetch(follower), diverging=(1, 1))
    log.truncate(Truncate(1))
    assert follower.truncated()
    assert follower.high_watermark == 1


def test_batches_have_to_fit() -> None:
    follower = following(log_of(1, 1))
    assert follower.check_base_offset(2, 0) is None
    assert follower.check_base_offset(5, 0) is None  # compaction
    with pytest.raises(KafkaError, match="orders-0: broker 1 sent a batch of offset 1, the log ends at 2"):
        follower.check_base_offset(1, 0)


def test_a_batch_around_the_leaders_log_start() -> None:
    assert following(log_of(start=7)).check_base_offset(5, 3) == Truncate(5, fully=True)
    assert following(log_of(1, 1)).check_base_offset(1, 2) == Truncate(1, fully=True)
