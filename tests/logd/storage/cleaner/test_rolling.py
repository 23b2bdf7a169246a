"""When the segment being written is closed by its age."""

from __future__ import annotations

from typing import Any

from logd.storage.log.rolling import roll_jitter_ms


def test_the_jitter_is_spread_and_stays_a_segments_own(keyed: Any) -> None:
    keyed.configure(segment_ms=10_000, segment_jitter_ms=4_000)
    jitters = []
    for number in range(30):
        keyed.append(("a", str(number)))
        segment = keyed.log.segments.active
        jitter = roll_jitter_ms(segment, keyed.config)
        assert 0 <= jitter < 4_000
        jitters.append(jitter)
        keyed.now += 10_000 - jitter
        keyed.append(("a", "not yet"))
        assert keyed.log.segments.active is segment
        assert roll_jitter_ms(segment, keyed.config) == jitter
        keyed.now += 1
        keyed.append(("a", "now"))
        assert keyed.log.segments.active is not segment
        keyed.now += 100_000
    assert max(jitters) - min(jitters) > 1_000


def test_no_jitter_is_more_than_the_time_itself(keyed: Any) -> None:
    keyed.configure(segment_ms=10, segment_jitter_ms=4_000)
    assert roll_jitter_ms(keyed.log.segments.active, keyed.config) < 10


def test_a_compacted_log_rolls_so_that_its_records_can_be_compacted_in_time(keyed: Any) -> None:
    keyed.configure(segment_ms=100_000, max_compaction_lag_ms=500)
    keyed.append(("a", "1"))
    keyed.now += 501
    keyed.append(("a", "2"))
    assert keyed.bases() == [0, 1]
    keyed.configure(cleanup_policy=("delete",))
    keyed.now += 501
    keyed.append(("a", "3"))
    assert keyed.bases() == [0, 1]
