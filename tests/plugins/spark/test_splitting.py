"""Tasks of ranges, as Spark's KafkaOffsetRangeCalculatorSuite has them."""

from __future__ import annotations

import pytest

from plugins.spark.log_range import LogRange
from plugins.spark.splitting import split_ranges

Ranges = list[tuple[int, int, int]]
"""Topic number, start and end."""


def ranges(whole: Ranges) -> list[LogRange]:
    return [LogRange(f"t{topic}", 1, start, end) for topic, start, end in whole]


@pytest.mark.parametrize(
    ("tasks", "whole", "expected"),
    [
        (3, [(1, 1, 2), (2, 1, 2), (3, 1, 2)], [(1, 1, 2), (2, 1, 2), (3, 1, 2)]),
        (4, [(1, 1, 5)], [(1, 1, 2), (1, 2, 3), (1, 3, 4), (1, 4, 5)]),
        (4, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), (2, 1, 7), (2, 7, 14), (2, 14, 21)]),
        (4, [(1, 1, 1), (2, 1, 21)], [(2, 1, 6), (2, 6, 11), (2, 11, 16), (2, 16, 21)]),
        (4, [(1, 1, 2), (2, 1, 1001)], [(1, 1, 2), (2, 1, 334), (2, 334, 667), (2, 667, 1001)]),
        (1, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), (2, 1, 21)]),
        (3, [(1, 1, 11)], [(1, 1, 4), (1, 4, 7), (1, 7, 11)]),
        (4, [(1, 1, 5), (2, 1, 21), (3, 1, 1)], [(1, 1, 5), (2, 1, 7), (2, 7, 14), (2, 14, 21)]),
        (
            6,
            [(1, 0, 10), (2, 0, 10), (3, 0, 1)],
            [(1, 0, 3), (1, 3, 6), (1, 6, 10), (2, 0, 3), (2, 3, 6), (2, 6, 10), (3, 0, 1)],
        ),
        (
            9,
            [(1, 0, 10000), (2, 0, 15000), (3, 0, 20000)],
            [(1, at, at + 5000) for at in (0, 5000)]
            + [(2, at, at + 5000) for at in (0, 5000, 10000)]
            + [(3, at, at + 5000) for at in (0, 5000, 10000, 15000)],
        ),
        (
            6,
            [(1, 0, 500), (2, 0, 12000), (3, 0, 15001)],
            [(1, 0, 500), (2, 0, 6000), (2, 6000, 12000), (3, 0, 5000), (3, 5000, 10000), (3, 10000, 15001)],
        ),
        (
            6,
            [(1, 0, 1), (2, 0, 1), (3, 0, 10000)],
            [(1, 0, 1), (2, 0, 1)] + [(3, at, at + 2500) for at in (0, 2500, 5000, 7500)],
        ),
        (4, [(1, 0, 1), (2, 0, 1), (3, 0, 2)], [(1, 0, 1), (2, 0, 1), (3, 0, 1), (3, 1, 2)]),
    ],
)
def test_small_ranges_stay_whole_and_large_ones_share_the_tasks(
    tasks: int, whole: Ranges, expected: Ranges
) -> None:
    """Once the small ranges counted among the tasks to share, and there were more tasks than asked for."""
    assert split_ranges(ranges(whole), tasks) == ranges(expected)


@pytest.mark.parametrize(
    ("tasks", "most", "whole", "expected"),
    [
        (None, 4, [(1, 1, 5)], [(1, 1, 5)]),
        (None, 4, [(1, 1, 2)], [(1, 1, 2)]),
        (None, 4, [(1, 1, 6)], [(1, 1, 3), (1, 3, 6)]),
        (
            None,
            20,
            [(1, 1, 40), (2, 1, 50), (3, 1, 60)],
            [
                (1, 1, 20),
                (1, 20, 40),
                (2, 1, 17),
                (2, 17, 33),
                (2, 33, 50),
                (3, 1, 20),
                (3, 20, 40),
                (3, 40, 60),
            ],
        ),
        (1, 20, [(1, 1, 40)], [(1, 1, 20), (1, 20, 40)]),
        (4, 20, [(1, 1, 40)], [(1, 1, 10), (1, 10, 20), (1, 20, 30), (1, 30, 40)]),
    ],
)
def test_no_task_has_more_records_than_allowed(
    tasks: int | None, most: int, whole: Ranges, expected: Ranges
) -> None:
    assert split_ranges(ranges(whole), tasks, most) == ranges(expected)
