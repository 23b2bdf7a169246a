"""Compaction of small files: the same rows, one commit, and nothing left of one that was broken off."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plugins.spark.compaction import compact
from plugins.spark.errors import CompactionLost, Fenced
from plugins.spark.table import ParquetTable
from tests.plugins.spark.table_files import add_rows


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    made = ParquetTable(tmp_path / "table")
    made.create()
    for start in range(0, 12, 3):
        add_rows(made, "t", "01", range(start, start + 3), start + 3, folder="day=1")
    add_rows(made, "t", "01", range(12, 14), 14, folder="day=2")
    return made


def offsets(table: ParquetTable) -> list[int]:
    return [
        offset
        for file in table.files()
        for offset in pq.ParquetFile(table.path / file.path).read(columns=["offset"])["offset"].to_pylist()
    ]


def test_small_files_of_a_folder_become_one(table: ParquetTable) -> None:
    before, replaced = table.latest(), table.files()[:4]
    assert before is not None
    done = compact(table)
    assert (done.files_before, done.files_after, done.rows) == (4, 1, 12)
    after = table.latest()
    assert after is not None
    assert (after.rows, after.positions, after.writer) == (before.rows, before.positions, before.writer)
    assert sorted(offsets(table)) == list(range(14))
    assert [Path(file.path).parts[2] for file in table.files()] == ["day=2", "day=1"]
    assert [file.path for file in table.removed_files()] == [file.path for file in replaced]
    assert [file.path for file in table.files(before)][:4] == [file.path for file in replaced]
    assert all((table.path / file.path).exists() for file in replaced), "readers may be at them"
    assert compact(table).number == 0, "nothing is left to do"


def test_large_files_are_left_alone(table: ParquetTable) -> None:
    size = table.files()[0].size
    assert compact(table, target_bytes=size * 2).files_before == 0
    done = compact(table, target_bytes=size * 2 + 200)
    assert (done.files_before, done.files_after) == (4, 2)
    assert sorted(offsets(table)) == list(range(14))


def test_a_writer_that_claims_the_table_meanwhile_fences_the_compaction(table: ParquetTable) -> None:
    """The new writer removes folders that no manifest names, and may have removed the compaction's."""
    before = table.files()
    with pytest.raises(Fenced):
        compact(table, advance=lambda size: claim(table))
    assert table.files() == before
    assert len(os.listdir(table.data_path)) == 5


def claim(table: ParquetTable) -> None:
    table.collect_orphans(table.claim())


def test_a_batch_that_is_committed_meanwhile_stays(table: ParquetTable) -> None:
    batches = iter([lambda: add_rows(table, "t", "01", [14], 15, folder="day=1")])

    def advance(size: float) -> None:
        next(batches, lambda: None)()

    assert compact(table, advance=advance).files_before == 4
    assert sorted(offsets(table)) == list(range(15))


def test_the_second_of_two_compactions_changes_nothing(table: ParquetTable) -> None:
    done = []

    def advance(size: float) -> None:
        if not done:
            done.append(True)
            compact(table)

    with pytest.raises(CompactionLost, match="another compaction"):
        compact(table, advance=advance)
    assert sorted(offsets(table)) == list(range(14))
    table.delete_removed(1 << 60)
    assert sorted(offsets(table)) == list(range(14))


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_compaction_that_breaks_off_at_its_commit_leaves_old_or_new_files(
    table: ParquetTable, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    link = os.link

    def breaks_off(source: Path, target: Path) -> None:
        if is_linked:
            link(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("plugins.spark.table.os.link", breaks_off)
        with pytest.raises(KeyboardInterrupt):
            compact(table)
    assert len(table.files()) == (2 if is_linked else 5)
    assert sorted(offsets(table)) == list(range(14))
    claim(table)
    assert sorted(offsets(table)) == list(range(14))
