"""The index of a join's window store."""

from typing import Any

import pytest

from streams.state.join_records import JoinRecords

LAST = 2**63 - 1


def records_at(*times: int) -> JoinRecords:
    entries: dict[bytes, Any] = {}

    def update(key: bytes, value: Any, timestamp: int) -> None:
        entries[key] = (value, timestamp)

    records = JoinRecords(update, entries.get, lambda key: set())
    for sequence, time in enumerate(times):
        records.add(b"k", sequence, f"v{time}", time)
    return records


@pytest.mark.parametrize(
    ("time_from", "time_to", "times"),
    [
        (0, LAST, [5, 7, LAST]),
        (-(2**70), 6, [5]),
        (6, 2**70, [7, LAST]),
        (-(2**63) - 1, 2**63, [5, 7, LAST]),
        (2**63, 2**64, []),
        (-(2**64), -(2**63) - 1, []),
        (LAST, LAST, [LAST]),
    ],
)
def test_ranges_beyond_64_bits_are_as_good_as_others(time_from: int, time_to: int, times: list[int]) -> None:
    """The window of a join may be longer than any timestamp. The compiled form raised OverflowError."""
    assert [time for time, _ in records_at(7, 5, LAST).find(b"k", time_from, time_to)] == times
