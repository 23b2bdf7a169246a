"""A stall of half a minute is reported once, with the reason, and so is its end."""

from __future__ import annotations

from kafka_client import TopicPartition
from mirror.stalls import STALL_SECONDS, Progress, Stall, Stalls, by_reason

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def why(tp: TopicPartition) -> str:
    return f"reason of {tp.topic}"


def test_only_what_has_something_to_copy_and_does_not_move_stands_still() -> None:
    stalls = Stalls()
    for now in (0.0, STALL_SECONDS - 1):
        assert not stalls.check([Progress(A, 5, 3), Progress(B, 7, 0)], now, why).started
    changes = stalls.check([Progress(A, 5, 4), Progress(B, 7, 1)], STALL_SECONDS, why)
    assert changes.started == (Stall(A, 0.0, "reason of a"),)
    assert list(stalls.stalled) == [A]
    assert not stalls.check([Progress(A, 5, 4)], STALL_SECONDS + 1, why).started, "reported once"
    changes = stalls.check([Progress(A, 6, 3)], STALL_SECONDS + 2, why)
    assert ([stall.tp for stall in changes.ended], dict(stalls.stalled)) == ([A], {})


def test_a_silent_source_is_no_partition_without_lag() -> None:
    stalls = Stalls()
    stalls.check([Progress(A, 5, 0)], 0.0, why)
    stalls.check([Progress(A, 5, None)], 10.0, why)
    assert not stalls.check([Progress(A, 5, None)], 10 + STALL_SECONDS - 1, why).started
    assert stalls.check([Progress(A, 5, None)], 10 + STALL_SECONDS, why).started


def test_a_partition_that_moves_slowly_does_not_stand_still() -> None:
    stalls = Stalls()
    for step in range(10):
        assert not stalls.check([Progress(A, step, 100)], step * (STALL_SECONDS - 1), why).started


def test_a_partition_that_is_no_longer_copied_is_forgotten() -> None:
    stalls = Stalls()
    stalls.check([Progress(A, 5, 3)], 0.0, why)
    stalls.check([Progress(A, 5, 3)], STALL_SECONDS, why)
    assert [stall.tp for stall in stalls.check([], STALL_SECONDS + 1, why).ended] == [A]
    assert not stalls.check([Progress(A, 5, 3)], STALL_SECONDS + 2, why).started, "it begins again"


def test_one_line_names_the_partitions_of_one_reason() -> None:
    five = [Stall(TopicPartition("t", number), float(number), "away") for number in range(5)]
    assert by_reason([*five, Stall(A, 0.0, "other")], 40.0) == [
        "t-0, t-1, t-2 and 2 more not copied for 36 s: away",
        "a-0 not copied for 40 s: other",
    ]
