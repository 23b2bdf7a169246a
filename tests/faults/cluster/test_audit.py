"""The counts of a cluster's audit: each kind of loss and doubling, separately."""

from __future__ import annotations

import pytest

from kafka_client.records import build_batch
from tests.faults.cluster.audit import tally_of


def log(*batches: tuple[int, list[int]]) -> bytes:
    """Records by their numbers, a producer epoch before those of a batch."""
    offset, written = 0, b""
    for epoch, numbers in batches:
        records = [(0, None, b"%d" % number, ()) for number in numbers]
        written += build_batch(
            records, base_offset=offset, producer_id=7, producer_epoch=epoch, base_sequence=offset
        )
        offset += len(numbers)
    return written


WHOLE = log((0, [0, 1, 2]))


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ([WHOLE, WHOLE, WHOLE], {"records checked, in all replicas": 9}),
        (
            [WHOLE, log((0, [0, 1]))],
            {"records checked, in all replicas": 5, "lost": 1, "replicas that differ": 1},
        ),
        ([log((0, [0, 2]))] * 2, {"records checked, in all replicas": 4, "lost": 1}),
        ([log((0, [0, 1, 1, 2]))] * 2, {"records checked, in all replicas": 8, "doubled": 1}),
        (
            [log((0, [0, 1]), (1, [1, 2]))] * 2,
            {"records checked, in all replicas": 6, "sent again under a new epoch": 1},
        ),
    ],
    ids=["whole", "shorter", "lost", "doubled", "sent again"],
)
def test_what_is_wrong_is_counted(replicas: list[bytes], expected: dict[str, int]) -> None:
    counts = tally_of(replicas, {0, 1, 2})
    assert {what: count for what, count in counts.items() if count} == expected
