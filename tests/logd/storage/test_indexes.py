"""Tests of the two indexes of a segment: their bytes, and what a lookup promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from logd.storage.disk import PosixDisk
from logd.storage.index.offset import OffsetIndex
from logd.storage.index.time import TimeIndex
from logd.storage.testing import FaultyDisk

BASE = 10_000_000_000


@pytest.fixture
def offsets(tmp_path: Path) -> OffsetIndex:
    index = OffsetIndex(PosixDisk(), tmp_path, "x.index", BASE)
    for last_offset, position in ((BASE + 9, 0), (BASE + 20, 4200), (BASE + 21, 9000)):
        index.append(last_offset, position)
    return index


@pytest.fixture
def times(tmp_path: Path) -> TimeIndex:
    index = TimeIndex(PosixDisk(), tmp_path, "x.timeindex", BASE)
    for timestamp, offset in ((1000, BASE + 9), (1000, BASE + 15), (900, BASE + 18), (2000, BASE + 20)):
        index.maybe_append(timestamp, offset)
    return index


def test_the_offset_index_is_kafkas(offsets: OffsetIndex) -> None:
    offsets.save().close()
    assert offsets.path.read_bytes() == bytes.fromhex(
        "00000009 00000000  00000014 00001068  00000015 00002328"
    )


def test_the_time_index_is_kafkas(times: TimeIndex) -> None:
    """Time indexes are laid out as Kafka's; only a larger timestamp makes an entry."""
    times.save().close()
    assert times.path.read_bytes() == bytes.fromhex("00000000000003e8 00000009  00000000000007d0 00000014")


@pytest.mark.parametrize("unloaded", [False, True])
def test_an_offset_lookup_never_goes_too_far(offsets: OffsetIndex, unloaded: bool) -> None:
    if unloaded:
        offsets.save().close()
        offsets.unload()
    positions = [offsets.lookup(BASE + relative) for relative in (0, 9, 10, 19, 20, 21, 500)]
    assert positions == [0, 0, 0, 0, 4200, 9000, 9000]
    assert [offsets.boundary_before(size) for size in (0, 4199, 4200, 10**6)] == [0, 0, 4200, 9000]
    assert offsets.last_position() == 9000


@pytest.mark.parametrize("unloaded", [False, True])
def test_a_time_lookup_never_goes_too_far(times: TimeIndex, unloaded: bool) -> None:
    if unloaded:
        times.save().close()
        times.unload()
    assert times.last_entry() == (2000, BASE + 20)
    offsets = [times.lookup(timestamp) - BASE for timestamp in (0, 1000, 1001, 2000, 2001)]
    assert offsets == [0, 0, 9, 9, 20]


def test_entries_saved_in_parts_read_back_whole(offsets: OffsetIndex, times: TimeIndex) -> None:
    for index in (offsets, times):
        index.save().close()
    offsets.append(BASE + 30, 12_000)
    times.maybe_append(3000, BASE + 30)
    for index in (offsets, times):
        index.save().close()
        index.unload()
    assert (len(offsets), offsets.lookup(BASE + 30)) == (4, 12_000)
    assert (len(times), times.last_entry()) == (3, (3000, BASE + 30))


def test_unsaved_entries_are_not_dropped(offsets: OffsetIndex) -> None:
    offsets.unload()
    assert len(offsets) == 3


def test_truncation_reaches_the_file(offsets: OffsetIndex, times: TimeIndex) -> None:
    offsets.save().close()
    times.save().close()
    offsets.truncate(9000)
    times.truncate(BASE + 20)
    assert (offsets.path.stat().st_size, times.path.stat().st_size) == (16, 12)
    assert (offsets.lookup(BASE + 500), times.last_entry()) == (4200, (1000, BASE + 9))
    offsets.clear()
    assert (len(offsets), offsets.path.stat().st_size) == (0, 0)


def test_a_partial_entry_at_the_end_is_not_read(offsets: OffsetIndex) -> None:
    offsets.save().close()
    with offsets.path.open("ab") as file:
        file.write(b"\x00\x00\x00")
    again = OffsetIndex(PosixDisk(), offsets.directory, offsets.name, BASE)
    assert (again.last_position(), len(again)) == (9000, 3)


def test_appending_reads_nothing(tmp_path: Path) -> None:
    """Appends read no index, not even an unloaded one. The active segment's index is dropped from memory when
    idle; reading it whole would block the event loop on the disk.
    """
    disk = FaultyDisk()
    offsets = OffsetIndex(disk, tmp_path, "x.index", BASE)
    times = TimeIndex(disk, tmp_path, "x.timeindex", BASE)
    for number in range(5):
        offsets.append(BASE + 10 * number, 100 * number)
        times.maybe_append(1000 + number, BASE + 10 * number)
        for index in (offsets, times):
            index.save().close()
            index.unload()
    disk.failing = {"read"}
    offsets.append(BASE + 50, 500)
    times.maybe_append(1003, BASE + 50)
    times.maybe_append(2000, BASE + 50)
    assert (len(offsets), len(times)) == (6, 6)
    assert (offsets.last_position(), times.last_entry()) == (500, (2000, BASE + 50))
    disk.failing = set()
    assert [offsets.lookup(BASE + 10 * number) for number in range(6)] == [
        100 * number for number in range(6)
    ]
    assert times.lookup(2000) == BASE + 40
    for index in (offsets, times):
        index.save().close()
    assert len(OffsetIndex(disk, tmp_path, "x.index", BASE)) == 6
    assert len(TimeIndex(disk, tmp_path, "x.timeindex", BASE)) == 6
