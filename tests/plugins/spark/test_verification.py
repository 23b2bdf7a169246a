"""`spark verify`: what the log has is compared with what the files have; the manifest is not believed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client import Client
from kafka_client.records import NewRecord
from plugins.spark.backfilling import request_backfill
from plugins.spark.manifest import Backfill
from plugins.spark.offset_counts import BLOCK, OffsetCounts, compare
from plugins.spark.table import ParquetTable
from plugins.spark.verification import VerifiedPartition, verify_table
from tests.plugins.spark.log import Log
from tests.plugins.spark.table_files import add_rows

NewName = Callable[[], str]


def records(*timestamps: int) -> list[NewRecord]:
    return [(timestamp, None, b"v", ()) for timestamp in timestamps]


def counted(*offsets: int) -> OffsetCounts:
    counts = OffsetCounts()
    counts.add(offsets)
    return counts


def test_offsets_are_compared_one_by_one() -> None:
    far = 1000 * BLOCK
    log, table = counted(0, 1, 2, far), counted(0, 2, 2, 3, far - 1)
    table.add([5] * 300)
    assert compare(log, table, 4) == (2, 1, 2, 2, 2, 5)
    assert compare(counted(1, far), counted(far, 1), 0) == (0, -1, 0, -1, 0, -1)
    assert counted(7, 7).total() == 2


@pytest.fixture
def topic(log: Log, new_name: NewName) -> str:
    """Return a topic with offsets 0 to 9."""
    name = new_name()
    log.create(name)
    log.produce(name, 0, records(*range(0, 1000, 100)))
    return name


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    made = ParquetTable(tmp_path / "table")
    made.create()
    return made


def topic_id(log: Log, topic: str) -> str:
    return log.ends(topic)[topic, 0].topic_id.hex()  # type: ignore[index]


def verified(log: Log, table: ParquetTable) -> VerifiedPartition:
    async def main() -> list[VerifiedPartition]:
        async with Client(log.bootstrap) as client:
            return await verify_table(client, table)

    (result,) = asyncio.run(main())
    return result


def test_a_table_with_each_offset_once_is_exact(log: Log, topic: str, table: ParquetTable) -> None:
    add_rows(table, topic, topic_id(log, topic), range(2, 6), 6)
    add_rows(table, topic, topic_id(log, topic), range(6, 10), 10)
    result = verified(log, table)
    assert result.is_exact
    assert (result.start, result.end, result.records, result.rows) == (2, 10, 8, 8)
    log.delete_records(topic, 4)
    result = verified(log, table)
    assert result.is_exact
    assert (result.records, result.purged) == (6, 2)


@pytest.mark.parametrize(
    ("offsets", "differences"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 8, 9], (1, 7, 0, -1, 0, -1)),
        ([*range(10), 3, 4], (0, -1, 2, 3, 0, -1)),
        ([*range(10), 77], (0, -1, 0, -1, 1, 77)),
    ],
    ids=["missing", "repeated", "foreign"],
)
def test_what_is_not_there_once_is_found(
    log: Log, topic: str, table: ParquetTable, offsets: list[int], differences: tuple[int, ...]
) -> None:
    add_rows(table, topic, topic_id(log, topic), offsets, 10)
    result = verified(log, table)
    assert not result.is_exact
    assert result.differences == differences


def test_a_topic_made_again_proves_nothing(log: Log, topic: str, table: ParquetTable) -> None:
    add_rows(table, topic, "01" * 16, range(10), 10)
    result = verified(log, table)
    assert not result.is_exact
    assert "made again" in result.problem


def test_a_file_that_is_missing_is_an_error(log: Log, topic: str, table: ParquetTable) -> None:
    add_rows(table, topic, topic_id(log, topic), range(10), 10)
    (table.path / table.files()[0].path).unlink()
    with pytest.raises(FileNotFoundError, match="is in the table and missing"):
        verified(log, table)


def test_a_backfill_is_requested_once_and_ends_where_the_table_begins(
    log: Log, topic: str, table: ParquetTable
) -> None:
    add_rows(table, topic, topic_id(log, topic), range(6, 10), 10)

    async def request(timestamp_ms: int) -> list[Backfill]:
        async with Client(log.bootstrap) as client:
            return list((await request_backfill(client, table, timestamp_ms, 0)).values())

    assert asyncio.run(request(600)) == []
    assert asyncio.run(request(250)) == [Backfill(start=3, next=3, end=6)]
    result = verified(log, table)
    assert result.is_exact
    with pytest.raises(ValueError, match="a backfill is at work"):
        asyncio.run(request(100))
