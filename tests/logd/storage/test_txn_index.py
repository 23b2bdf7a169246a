"""Tests of the transaction index: Kafka's bytes, the results of a search, and the detection of damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import CorruptRecordBatch
from logd.storage.disk import PosixDisk
from logd.storage.index.transaction import ENTRY_SIZE, AbortedTransaction, TransactionIndex

BASE = 100
FIRST = AbortedTransaction(7, 100, 110, 105)
SECOND = AbortedTransaction(8, 105, 120, 115)
THIRD = AbortedTransaction(9, 115, 130, 131)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000100.txnindex"


@pytest.fixture
def index(path: Path) -> TransactionIndex:
    index = TransactionIndex(PosixDisk(), path.parent, path.name, BASE)
    for entry in (FIRST, SECOND, THIRD):
        index.append(entry)
    return index


def reread(path: Path) -> TransactionIndex:
    return TransactionIndex(PosixDisk(), path.parent, path.name, BASE)


def test_the_bytes_are_kafkas(index: TransactionIndex, path: Path) -> None:
    data = path.read_bytes()
    assert ENTRY_SIZE == 34 and len(data) == 3 * 34
    assert data[:34] == bytes.fromhex("000000000000000000070000000000000064000000000000006e0000000000000069")
    assert reread(path).entries == [FIRST, SECOND, THIRD]


def test_there_is_no_file_without_an_entry(path: Path) -> None:
    index = reread(path)
    assert index.entries == [] and index.check() and index.save() is None
    index.truncate(0)
    assert not path.exists()


@pytest.mark.parametrize(
    ("start", "end", "expected", "is_complete"),
    [
        (100, 200, [FIRST, SECOND, THIRD], False),
        (100, 105, [FIRST], True),
        (100, 106, [FIRST, SECOND], True),
        (111, 116, [SECOND, THIRD], True),
        (110, 131, [FIRST, SECOND, THIRD], True),
        (121, 122, [THIRD], True),
        (131, 140, [], False),
        (0, 100, [], True),
    ],
)
def test_a_search_stops_where_nothing_later_can_matter(
    index: TransactionIndex, start: int, end: int, expected: list[AbortedTransaction], is_complete: bool
) -> None:
    aborted: list[AbortedTransaction] = []
    assert index.collect(start, end, aborted) == is_complete
    assert aborted == expected


@pytest.mark.parametrize(("end", "count"), [(200, 3), (131, 3), (130, 2), (111, 1), (110, 0), (0, 0)])
def test_truncation_goes_by_the_marker(index: TransactionIndex, path: Path, end: int, count: int) -> None:
    index.truncate(end)
    assert len(index.entries) == count and path.stat().st_size == count * ENTRY_SIZE
    index.append(AbortedTransaction(1, 300, 310, 311))
    assert len(reread(path).entries) == count + 1


def test_an_entry_is_forced_to_the_disk_once(index: TransactionIndex) -> None:
    file = index.save()
    assert file is not None
    file.close()
    assert index.save() is None
    index.truncate(121)
    assert index.save() is not None


@pytest.mark.parametrize("left", [1, 33, 35, 101])
def test_a_torn_entry_is_noticed_and_cut(index: TransactionIndex, path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])
    torn = reread(path)
    assert not torn.check()
    assert len(torn.entries) == left // ENTRY_SIZE, "reading passes over what is left of one"
    torn.truncate(1000)
    assert path.stat().st_size == left // ENTRY_SIZE * ENTRY_SIZE and torn.check()


@pytest.mark.parametrize(
    "entry",
    [
        bytes(34),
        b"\0\1" + bytes.fromhex("0000000000000007000000000000006400000000000000ff0000000000000069"),
        bytes.fromhex("00000000000000000007000000000000006400000000000000650000000000000069"),
        bytes.fromhex("0000000000000000000700000000000000fe00000000000000fd0000000000000069"),
    ],
    ids=["zeros", "another version", "falling offsets", "ends before it begins"],
)
def test_an_entry_that_makes_no_sense_is_noticed(index: TransactionIndex, path: Path, entry: bytes) -> None:
    path.write_bytes(path.read_bytes() + entry)
    damaged = reread(path)
    assert not damaged.check()
    with pytest.raises(CorruptRecordBatch):
        _ = damaged.entries
    damaged.truncate(1000)
    assert damaged.entries == [FIRST, SECOND, THIRD] and damaged.check()


def test_zeros_at_the_beginning_are_noticed(path: Path) -> None:
    path.write_bytes(bytes(34))
    assert not TransactionIndex(PosixDisk(), path.parent, path.name, 0).check()
