"""How far a copy is behind, by what the source said of its log and when."""

from __future__ import annotations

from mirror.source_log import ANSWERS_MAX, SourceLog


def test_lag_in_seconds_is_the_age_of_the_newest_answer_that_is_wholly_copied() -> None:
    log = SourceLog()
    log.answered(10, 100.0)
    log.answered(10, 101.0)
    log.answered(25, 102.0)
    log.answered(40, 103.0)
    assert (log.lag_records(10, 0), log.lag_seconds(10, 0, 104.0)) == (30, 3.0)
    assert (log.lag_records(30, 0), log.lag_seconds(30, 0, 104.0)) == (10, 2.0)
    assert (log.lag_records(40, 0), log.lag_seconds(40, 0, 104.0)) == (0, 0)
    assert log.rpo_seconds(40, 104.0) == 1.0, "a failover may lose what came since the last answer"
    assert log.lag_records(40, 43) == 3, "a fetch told of later records"


def test_lag_is_unknown_while_the_source_is_silent_but_not_what_a_failover_loses() -> None:
    log = SourceLog()
    log.answered(10, 100.0)
    log.failed("connection refused")
    assert (log.lag_records(10, 10), log.lag_seconds(10, 10, 160.0)) == (None, None)
    assert log.rpo_seconds(10, 160.0) == 60.0
    log.answered(12, 161.0)
    assert (log.lag_records(10, 10), log.lag_seconds(10, 10, 162.0)) == (2, 62.0)


def test_seconds_are_unknown_until_the_copy_has_passed_the_first_answer() -> None:
    log = SourceLog()
    assert log.rpo_seconds(0, 99.0) is None
    log.answered(10, 100.0)
    assert (log.lag_records(4, 0), log.lag_seconds(4, 0, 160.0), log.rpo_seconds(4, 160.0)) == (6, None, None)


def test_the_answers_of_a_partition_that_does_not_move_are_bounded() -> None:
    log = SourceLog()
    for second in range(10 * ANSWERS_MAX):
        log.answered(second, float(second))
        assert len(log._answers) <= ANSWERS_MAX
    last = 10 * ANSWERS_MAX - 1
    assert log.complete_at(last) == last
    late = SourceLog()
    for second in range(10 * ANSWERS_MAX):
        late.answered(second, float(second))
    at = late.complete_at(400)
    assert at is not None
    assert at <= 400, "never later than it was"
