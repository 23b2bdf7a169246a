"""Checkpoints of a table's files: to open a table costs the same after many commits as after few."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from plugins.spark.checkpoints import CHECKPOINTS, INTERVAL
from plugins.spark.errors import Fenced
from plugins.spark.manifest import DataFile, Manifest, TopicPosition, encode
from plugins.spark.table import ParquetTable


def commit_batches(table: ParquetTable, state: Manifest, count: int) -> Manifest:
    """Commit manifests with a file each, which is not on the disk, so without syncs of folders."""
    for number in range(state.number + 1, state.number + count + 1):
        file = DataFile(path=f"data/_batch={number:08d}-aaaaaa/part.parquet", rows=1, size=1)
        state = state.next(number, rows=state.rows + 1, files=(file,))
        table.commit(state)
    return state


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParquetTable:
    monkeypatch.setattr("plugins.spark.table.sync_directory", lambda path: None)
    made = ParquetTable(tmp_path / "table")
    made.create()
    return made


def reads(table: ParquetTable, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many files are read or looked for when a process opens the table and asks for its state."""
    looked: list[object] = []

    def counted(original: object) -> object:
        def call(path: Path, *arguments: object) -> object:
            looked.append(path)
            return original(path, *arguments)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patch:
        for name in ("read_bytes", "read_text", "exists"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        opened = ParquetTable(table.path)
        latest = opened.latest()
        assert latest is not None
        assert len(opened.files()) == latest.rows
    return len(looked)


def test_opening_costs_the_same_after_many_commits(
    table: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = commit_batches(table, table.claim(), INTERVAL + 10)
    before = reads(table, monkeypatch)
    commit_batches(table, state, 5 * INTERVAL)
    assert reads(table, monkeypatch) == before < INTERVAL / 2


def test_without_checkpoints_the_manifests_say_the_same(table: ParquetTable) -> None:
    commit_batches(table, table.claim(), 2 * INTERVAL + 5)
    files, latest = table.files(), table.latest()
    checkpoints = table.path / CHECKPOINTS
    assert len(os.listdir(checkpoints)) == 3, "two checkpoints and the pointer to the newest"
    newest = max(checkpoints.glob("*.json"))
    newest.write_bytes(b"{ half a check")
    assert ParquetTable(table.path).files() == files
    newest.unlink()
    assert ParquetTable(table.path).files() == files
    for path in checkpoints.iterdir():
        path.unlink()
    assert ParquetTable(table.path).files() == files
    assert ParquetTable(table.path).latest() == latest


def test_a_table_of_format_1_gets_its_first_offsets_when_it_is_claimed(table: ParquetTable) -> None:
    for number, offset in ((1, 7), (2, 9)):
        manifest = Manifest(
            version=1,
            number=number,
            writer="old",
            committed_at_ms=0,
            positions={"t": TopicPosition(topic_id="00", offsets={0: offset})},
            value_schema="{}",
        )
        table.commit(manifest)
    claim = table.claim()
    assert claim.version == 2
    assert claim.positions == {"t": TopicPosition(topic_id="00", offsets={0: 9}, starts={0: 7})}
    assert claim.inferred_topics == ("t",)


def test_two_processes_of_one_writer_take_turns_and_another_writer_fences_them(table: ParquetTable) -> None:
    """The sink's batch and a compaction are both on top of the newest manifest, in any order."""
    claim = table.claim()
    calls = []

    def build(state: Manifest) -> Manifest:
        calls.append(state.number)
        if len(calls) == 1:
            table.commit(state.next(0, rows=5))
        return state.next(0, rows=state.rows + 1)

    assert table.update(claim.writer, build).rows == 6
    assert calls == [1, 2]
    table.claim()
    with pytest.raises(Fenced):
        table.update(claim.writer, build)


def test_a_failed_checkpoint_is_no_failed_commit(
    table: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, target: Path) -> None:
        raise OSError("no space left on device")

    state = commit_batches(table, table.claim(), INTERVAL - 2)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        state = commit_batches(table, state, 1)
    assert table.latest() == state
    commit_batches(table, state, 1)
    assert (table.path / CHECKPOINTS / "last").read_text() == f"{INTERVAL + 1}\n"


def test_what_compaction_replaced_is_out_of_the_table_and_no_orphan(table: ParquetTable) -> None:
    state = commit_batches(table, table.claim(), 2)
    old = [file.path for file in table.files()]
    for path in old:
        (table.path / path).parent.mkdir()
        (table.path / path).write_bytes(b"x")
    merged = DataFile(path="data/_batch=00000004-bbbbbb/all.parquet", rows=2, size=1)
    table.commit(state.next(1000, files=(merged,), removed=tuple(old)))
    assert table.files() == [merged]
    assert table.collect_orphans(table.claim()) == 0
    assert [file.path for file in table.removed_files()] == old
    assert table.delete_removed(1000) == 0
    assert table.delete_removed(1001) == 2
    assert table.removed_files() == []
    assert list(table.data_path.iterdir()) == []


def test_manifests_of_format_2_are_refused_by_format_1() -> None:
    assert msgspec.json.decode(encode(Manifest(number=1, writer="w", committed_at_ms=0)))["version"] == 2
