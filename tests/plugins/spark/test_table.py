"""The Parquet table's manifests: atomic, exclusive, and the only truth about what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugins.spark.errors import Fenced
from plugins.spark.manifest import DataFile, Manifest, TopicPosition, decode, encode
from plugins.spark.table import ParquetTable


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    made = ParquetTable(tmp_path / "table")
    made.create()
    return made


def write_batch(table: ParquetTable, state: Manifest, rows: int) -> Manifest:
    """Write a file and commit it."""
    directory = table.batch_directory(state.number + 1)
    (directory / "month=2013-01").mkdir(parents=True)
    path = directory / "month=2013-01" / "part-0.parquet"
    path.write_bytes(b"x" * rows)
    file = DataFile(path=str(path.relative_to(table.path)), rows=rows, size=rows)
    committed = Manifest(
        number=state.number + 1,
        writer=state.writer,
        committed_at_ms=0,
        rows=state.rows + rows,
        files=(file,),
        positions=state.positions_after({("t", 0): state.rows + rows}, {"t": "01" * 16}),
        value_schema="{}",
        table_schema="{}",
    )
    table.commit(committed)
    return committed


def test_a_new_table_is_empty(table: ParquetTable) -> None:
    assert table.latest() is None
    assert table.files() == []
    assert ParquetTable(table.path / "nowhere").latest() is None


def test_the_newest_manifest_holds_rows_and_positions(table: ParquetTable) -> None:
    state = write_batch(table, write_batch(table, table.claim(), 5), 7)
    latest = ParquetTable(table.path).latest()
    assert latest == state
    assert (latest.number, latest.rows, latest.position("t", 0)) == (3, 12, 12)
    assert (latest.position("t", 1), latest.position("u", 0)) == (None, None)
    assert [file.rows for file in table.files()] == [5, 7]
    assert all((table.path / file.path).exists() for file in table.files())


def test_a_claim_keeps_everything_and_fences_the_writer_before(table: ParquetTable) -> None:
    old = write_batch(table, table.claim(), 5)
    new = ParquetTable(table.path).claim()
    assert (new.rows, new.positions, new.table_schema, new.files) == (5, old.positions, "{}", ())
    assert new.writer != old.writer
    with pytest.raises(Fenced, match="manifest 3"):
        write_batch(table, old, 7)
    assert table.latest() == new
    assert len(table.files()) == 1


def test_orphans_are_what_no_manifest_names(table: ParquetTable) -> None:
    state = write_batch(table, table.claim(), 5)
    orphan = table.batch_directory(state.number + 1)
    (orphan / "month=2013-02").mkdir(parents=True)
    (orphan / "month=2013-02" / "part-0.parquet").write_bytes(b"x")
    (table.path / "_manifests" / ".00000003.json.1234").write_bytes(b"{ half a mani")
    claim = table.claim()
    assert table.collect_orphans(claim) == 2
    assert not orphan.exists()
    assert [file.rows for file in table.files()] == [5]
    assert (table.path / table.files()[0].path).exists()
    assert table.collect_orphans(claim) == 0


def test_a_writer_that_stood_still_behind_its_claim_removes_nothing_of_the_next_ones(
    table: ParquetTable,
) -> None:
    """Writers that were paused after their claim remove no file of the next writer.

    Once such a writer looked for orphans when it went on, and took the next one's uncommitted batch for one.
    """
    stood_still = table.claim()
    state = ParquetTable(table.path).claim()
    writing = table.batch_directory(state.number + 1)
    writing.mkdir()
    aside = table.path / "_manifests" / f".{state.number + 1:08d}.json.1234"
    aside.write_bytes(b"{}")
    assert table.collect_orphans(stood_still) == 0
    assert writing.exists() and aside.exists()
    written = write_batch(table, state, 5)
    assert table.collect_orphans(stood_still) == 0
    assert [(table.path / file.path).exists() for file in written.files] == [True]


def test_nothing_of_a_commit_shows_before_its_name_is_taken(
    table: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = table.claim()

    def dies(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("plugins.spark.table.os.link", dies)
    with pytest.raises(KeyboardInterrupt):
        write_batch(table, state, 5)
    monkeypatch.undo()
    assert table.latest() == state
    assert write_batch(table, state, 5).number == 2


def test_a_manifest_is_json_and_round_trips() -> None:
    manifest = Manifest(
        number=2,
        writer="w",
        committed_at_ms=7,
        rows=3,
        files=(DataFile(path="data/_batch=2/a.parquet", rows=3, size=9),),
        positions={"t": TopicPosition(topic_id="00", offsets={0: 3, 10: 4})},
    )
    assert decode(encode(manifest)) == manifest
    assert json.loads(encode(manifest))["positions"] == {
        "t": {"topic_id": "00", "offsets": {"0": 3, "10": 4}}
    }


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        decode(b'{"version": 99, "number": 1, "writer": "w", "committed_at_ms": 0}')
