"""The options that set where reading begins."""

from __future__ import annotations

from datetime import datetime

import pytest

from kafka_client import TopicPartition
from millstream.commands.consume.positions import Start, parse_start, parse_time, select_partitions
from millstream.terminal.status import NotFound, UsageError

NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("123", 123),
        ("5ms", NOW_MS - 5),
        ("2s", NOW_MS - 2_000),
        ("3m", NOW_MS - 180_000),
        ("1h", NOW_MS - 3_600_000),
        ("1d", NOW_MS - 86_400_000),
        ("1970-01-01T00:00:01.500+00:00", 1_500),
        ("1970-01-02T00:00:00Z", 86_400_000),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert parse_time(text, "--since", NOW_MS) == ms


def test_a_time_without_a_zone_is_local() -> None:
    assert parse_time("2026-01-31", "--since", 0) == datetime(2026, 1, 31).timestamp() * 1000


@pytest.mark.parametrize("text", ["yesterday", "-5", "5 m", "2026-13-01"])
def test_no_times(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        parse_time(text, "--since", NOW_MS)


def test_starts() -> None:
    assert parse_start(None, False, None, None) is None
    assert parse_start(None, True, None, None) == Start("earliest")
    assert parse_start("latest", False, None, None) == Start("latest")
    assert parse_start("17", False, None, None) == Start("offset", 17)
    assert parse_start(None, False, 3, None) == Start("last", 3)
    assert parse_start(None, False, None, 5) == Start("since", 5)
    with pytest.raises(UsageError, match="one of"):
        parse_start("17", True, None, None)
    with pytest.raises(UsageError, match="--offset '-1'"):
        parse_start("-1", False, None, None)


def test_partitions() -> None:
    existing = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
    assert select_partitions(existing, []) == existing
    assert select_partitions(existing, [1]) == [TopicPartition("t", 1)]
    with pytest.raises(NotFound, match=r"--partition 2: there is none such \(t has 2, u has 1"):
        select_partitions(existing, [0, 2])
