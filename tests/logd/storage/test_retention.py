"""Which segments go, and when."""

from __future__ import annotations

from typing import Any

import pytest

HOUR = 3_600_000


@pytest.fixture
def hourly(store: Any) -> Any:
    """Six segments of one record each, one hour apart, the last one now."""
    store.configure(segment_bytes=300, retention_ms=-1, retention_bytes=-1)
    for hours in range(5, -1, -1):
        store.append("x" * 100, timestamps=[store.now - hours * HOUR])
    return store


def starts(store: Any) -> list[int]:
    return sorted(int(name[:20]) for name in store.files() if name.endswith(".log"))


def apply(store: Any, **facts: Any) -> None:
    for deletion in store.log.shortening.apply_retention(store.now, **facts):
        deletion.run()


def test_nothing_goes_without_a_limit(hourly: Any) -> None:
    apply(hourly)
    assert starts(hourly) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("reopened", [False, True])
def test_by_time(hourly: Any, reopened: bool) -> None:
    if reopened:
        hourly.reopen(clean=True)
    hourly.configure(retention_ms=3 * HOUR)
    apply(hourly)
    assert starts(hourly) == [2, 3, 4, 5]
    assert hourly.log.log_start_offset == 2
    assert not [name for name in hourly.files() if name.startswith("00000000000000000001")]


def test_a_late_record_keeps_its_segment(hourly: Any) -> None:
    """Retention goes by the largest timestamp, and stops at the first segment to be kept."""
    hourly.configure(segment_bytes=300, retention_ms=HOUR)
    hourly.log.shortening.truncate_to(0, hourly.now)
    for hours in (9, 0, 9):
        hourly.append("x" * 100, timestamps=[hourly.now - hours * HOUR])
    apply(hourly)
    assert starts(hourly) == [1, 2]


def test_an_active_segment_that_is_too_old_is_rolled_and_goes(hourly: Any) -> None:
    hourly.configure(retention_ms=HOUR)
    hourly.now += 2 * HOUR
    apply(hourly)
    assert starts(hourly) == [6]
    assert (hourly.log.log_start_offset, hourly.log.log_end_offset) == (6, 6)
    assert hourly.append("next") == 6
    hourly.reopen(clean=True)
    assert (hourly.log.log_start_offset, hourly.log.log_end_offset) == (6, 7)


def test_by_size(hourly: Any) -> None:
    size = hourly.log.size // 6
    hourly.configure(retention_bytes=3 * size)
    apply(hourly)
    assert starts(hourly) == [3, 4, 5]
    hourly.configure(retention_bytes=3 * size - 1)
    apply(hourly)
    assert starts(hourly) == [3, 4, 5], "a segment goes only if what is left is not less than the limit"
    hourly.configure(retention_bytes=2 * size)
    apply(hourly)
    assert starts(hourly) == [4, 5]


def test_nothing_above_the_high_watermark_goes(hourly: Any) -> None:
    hourly.configure(retention_ms=0)
    apply(hourly, upper_bound=2)
    assert starts(hourly) == [2, 3, 4, 5]


def test_a_compacted_log_keeps_its_age(hourly: Any) -> None:
    hourly.configure(cleanup_policy=("compact",), retention_ms=0, retention_bytes=0)
    apply(hourly)
    assert starts(hourly) == [0, 1, 2, 3, 4, 5]
    hourly.log.log_start_offset = 2
    apply(hourly)
    assert starts(hourly) == [2, 3, 4, 5]


def test_compact_and_delete_does_both(hourly: Any) -> None:
    hourly.configure(cleanup_policy=("compact", "delete"), retention_ms=3 * HOUR)
    apply(hourly)
    assert starts(hourly) == [2, 3, 4, 5]


def test_records_without_a_timestamp_age_with_their_file(store: Any) -> None:
    store.configure(segment_bytes=300, retention_ms=HOUR)
    for _ in range(2):
        store.append("x" * 100, timestamps=[-1])
    apply(store)
    assert starts(store) == [0, 1]
    store.now += 2 * HOUR
    apply(store)
    assert starts(store) == [2]


def test_an_empty_log_is_left_alone(store: Any) -> None:
    store.configure(retention_ms=0, retention_bytes=0)
    apply(store)
    assert starts(store) == [0]


def test_epochs_move_up_with_the_log_start(store: Any, batch: Any) -> None:
    store.configure(segment_bytes=300, retention_bytes=0, retention_ms=-1)
    for epoch in (0, 1, 1, 2):
        store.log.writer.append(batch("x" * 100), epoch, store.now)
    store.configure(retention_bytes=2 * store.log.size // 4)
    apply(store)
    assert store.log.log_start_offset == 2
    assert [store.log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2)] == [(0, 2), (1, 3), (2, 4)]
