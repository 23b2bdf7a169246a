"""The Delta table's commits, without Spark: atomic, exclusive, each offset once whatever breaks off.

Fault model: the writer ends before or after any of its commits; a commit reports an error, whether it took
place or not; other programs and other writers commit between any two steps.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from connect.api import ConfigError, OffsetRange, TopicPartition
from millstream.commands.spark.tables import offsets_expected, table_row, tables_in
from plugins.spark.backfilling import after_ranges, plan_backfill, with_backfills
from plugins.spark.compaction import compact
from plugins.spark.delta_state import PROPERTY
from plugins.spark.delta_table import DeltaTable, _Commit
from plugins.spark.errors import Fenced, PositionLost, SchemaConflict, TableRefused, TopicRecreated, id_text
from plugins.spark.formats import format_of, open_target
from plugins.spark.manifest import Backfill, Manifest
from plugins.spark.planning import plan_batch
from plugins.spark.table import ParquetTable
from tests.plugins.spark.delta_files import (
    TOPIC_ID,
    add_batch,
    columns,
    make_table,
    spark_schema,
    start_topic,
    write_file,
)

P0 = f"sink/{id_text(TOPIC_ID)}/0"


def offsets(path: Path) -> list[int]:
    """Return the offsets as delta-rs's reader sees them."""
    table: Any = deltalake.DeltaTable(str(path)).to_pyarrow_table(columns=["offset"])
    return sorted(table["offset"].to_pylist())


def position(table: DeltaTable) -> int | None:
    state = table.latest()
    return None if state is None else state.position("t", 0)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    return make_table(tmp_path / "a table")


@pytest.fixture
def writer(table: DeltaTable) -> str:
    """Return the writer of a table that has a position of `t`, and no rows."""
    name = table.claim().writer
    start_topic(table, name)
    return name


def other_program(table: DeltaTable) -> None:
    """Commit a version, as any other user of the table may."""
    handle = deltalake.DeltaTable(str(table.path))
    handle.alter.set_table_description(f"version {handle.version()}")


def test_a_batch_is_one_commit_of_files_and_transactions(table: DeltaTable, writer: str) -> None:
    before = deltalake.DeltaTable(str(table.path)).version()
    add_batch(table, writer, range(5))
    handle = deltalake.DeltaTable(str(table.path))
    assert handle.version() == before + 1
    assert handle.transaction_version(P0) == 5
    state = DeltaTable(table.path).latest()
    assert state is not None
    assert (state.rows, state.position("t", 0), state.positions["t"].starts) == (5, 5, {0: 0})
    assert offsets(table.path) == [*range(5)]
    files = [str(table.path / file.path) for file in table.files()]
    assert ds.dataset(files).to_table(columns=["value"])["value"].to_pylist() == ["0", "1", "2", "3", "4"]


def test_positions_are_those_of_the_transactions(table: DeltaTable, writer: str) -> None:
    add_batch(table, writer, range(5))
    handle = deltalake.DeltaTable(str(table.path))
    assert '"offsets"' not in handle.metadata().configuration[PROPERTY]
    later = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(P0, 7)])
    handle.alter.set_table_description("a transaction", commit_properties=later)
    assert position(table) == 7


def test_partition_columns_are_deltas_partition_values(tmp_path: Path) -> None:
    table = make_table(tmp_path, month=True)
    writer = table.claim().writer
    start_topic(table, writer)
    months = ["2013-01", None, "a b/%:=é"]
    for number, month in enumerate(months):
        add_batch(table, writer, [number], month=month)
    rows: Any = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table(columns=["offset", "month"])
    assert sorted(rows.to_pylist(), key=lambda row: row["offset"]) == [
        {"offset": number, "month": month} for number, month in enumerate(months)
    ]
    assert table.partition_columns() == ["month"]
    assert [table.folders(file) for file in table.files()][:2] == [
        ("month=2013-01",),
        ("month=__HIVE_DEFAULT_PARTITION__",),
    ]


class Died(BaseException):
    """The writer's end: nothing of it runs any more."""


class DiesAt:
    """Commits that die at the `number`-th one, before it or after it."""

    def __init__(self, number: int, when: str) -> None:
        self._left = number
        self._when = when
        self._original = DeltaTable._try

    def __call__(self, table: DeltaTable, handle: deltalake.DeltaTable, commit: _Commit) -> bool:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            raise Died
        took_place = self._original(table, handle, commit)
        if self._left == 0:
            raise Died
        return took_place


def run_writer(path: Path, end: int) -> None:
    """Claim the table and add three rows at a time up to `end`, the second batch with a new column."""
    table = make_table(path)
    claim = table.claim()
    table.collect_orphans(claim)
    if claim.position("t", 0) is None:
        start_topic(table, claim.writer)
    while (start := position(table) or 0) < end:
        grown = start >= 3
        add_batch(
            table,
            claim.writer,
            range(start, start + 3),
            more={"delay": [0.5] * 3} if grown else {},
            changes={
                "table_schema": columns(value="string", **{"delay": "double"} if grown else {}),
                "value_schema": spark_schema(**{"delay": "double"} if grown else {}),
            },
        )


# A claim, the first position, the values' columns, a batch, the column, its schema, a batch.
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
def test_a_writer_that_dies_at_any_commit_leaves_each_offset_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    dies_at = DiesAt(number, when)
    monkeypatch.setattr(DeltaTable, "_try", lambda *arguments: dies_at(*arguments))
    with pytest.raises(Died):
        run_writer(tmp_path, 6)
    in_table = [] if number < 4 or (number, when) == (4, "before") else [0, 1, 2]
    in_table = [*range(6)] if (number, when) == (7, "after") else in_table
    assert offsets(tmp_path) == in_table
    monkeypatch.undo()
    run_writer(tmp_path, 9)
    assert offsets(tmp_path) == [*range(9)]
    table = DeltaTable(tmp_path)
    assert {Path(file.path).parts[1] for file in table.files()} == {
        folder.name for folder in (tmp_path / "data").iterdir()
    }


@pytest.mark.parametrize("others", [0, 2])
def test_a_commit_that_fails_after_it_took_place_is_not_repeated(
    table: DeltaTable, writer: str, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """The outcome of a commit is unknown to its writer: the table tells, also with others' commits behind."""
    original = deltalake.DeltaTable.create_write_transaction

    def fails(handle: deltalake.DeltaTable, *arguments: Any, **options: Any) -> None:
        original(handle, *arguments, **options)
        for _ in range(others):
            other_program(table)
        raise OSError("the connection to the disk was lost")

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", fails)
    assert add_batch(table, writer, range(5)).position("t", 0) == 5
    monkeypatch.undo()
    assert offsets(table.path) == [*range(5)]
    add_batch(table, writer, range(5, 7))
    assert offsets(table.path) == [*range(7)]


def test_a_commit_that_fails_before_it_took_place_is_an_error(
    table: DeltaTable, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", fails)
    before = table.latest()
    with pytest.raises(OSError, match="no space left"):
        add_batch(table, writer, range(5))
    monkeypatch.undo()
    assert table.latest() == before
    add_batch(table, writer, range(5))
    assert offsets(table.path) == [*range(5)]


def test_a_version_that_another_program_has_taken_is_followed_by_the_batch(
    table: DeltaTable, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = deltalake.DeltaTable.create_write_transaction
    left = [3]

    def after_others(handle: deltalake.DeltaTable, *arguments: Any, **options: Any) -> None:
        if left[0]:
            left[0] -= 1
            other_program(table)
        original(handle, *arguments, **options)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", after_others)
    state = add_batch(table, writer, range(5))
    assert (state.position("t", 0), left) == (5, [0])
    assert offsets(table.path) == [*range(5)]


def test_other_programs_delete_and_rewrite_rows(table: DeltaTable, writer: str) -> None:
    for offset in range(3):
        add_batch(table, writer, [offset])
    deltalake.DeltaTable(str(table.path)).delete("offset = 1")
    deltalake.DeltaTable(str(table.path)).optimize.compact()
    add_batch(table, writer, [3])
    claim = table.claim()
    assert (claim.position("t", 0), table.collect_orphans(claim)) == (4, 0)
    assert offsets(table.path) == [0, 2, 3]


def test_a_batch_that_is_in_the_table_is_refused_by_a_fresh_handle(table: DeltaTable, writer: str) -> None:
    """delta-rs commits a committed version again if its handle was opened after the commit."""
    batch = add_batch(table, writer, range(5))
    again = DeltaTable(table.path, "sink")
    with pytest.raises(Fenced, match="in the table already"):
        again.update(writer, lambda state: state.next(0, files=batch.files, positions=state.positions))
    assert offsets(table.path) == [*range(5)]


def test_an_older_claim_is_refused_whenever_the_newer_one_came(
    table: DeltaTable, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_batch(table, writer, range(5))
    newer = DeltaTable(table.path, "sink")
    claims: list[Manifest] = []
    original = deltalake.DeltaTable.create_write_transaction

    def after_a_claim(handle: deltalake.DeltaTable, *arguments: Any, **options: Any) -> None:
        claims.append(newer.claim())
        original(handle, *arguments, **options)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", after_a_claim)
    with pytest.raises(Fenced, match="another writer"):
        add_batch(table, writer, range(5, 7))
    monkeypatch.undo()
    with pytest.raises(Fenced, match="another writer"):
        add_batch(table, writer, range(5, 7))
    assert offsets(table.path) == [*range(5)]
    assert add_batch(newer, claims[0].writer, range(5, 7)).position("t", 0) == 7


def test_writers_that_race_add_each_offset_once(tmp_path: Path) -> None:
    end, failures = 24, list[BaseException]()

    def race() -> None:
        try:
            while (position(make_table(tmp_path)) or 0) < end:
                try:
                    run_writer(tmp_path, end)
                except (Fenced, FileNotFoundError):
                    pass  # the other one has claimed the table, and removed the files that this one wrote
        except BaseException as e:
            failures.append(e)

    make_table(tmp_path)
    racing = [threading.Thread(target=race) for _ in range(2)]
    for thread in racing:
        thread.start()
    for thread in racing:
        thread.join()
    assert not failures
    assert offsets(tmp_path) == [*range(end)]


def test_a_topic_made_again_is_refused_or_read_from_its_start(table: DeltaTable, writer: str) -> None:
    add_batch(table, writer, range(5))
    state = table.latest()
    assert state is not None
    other = bytes([2] * 16)
    ends = {TopicPartition("t", 0): OffsetRange(0, 3, other)}
    with pytest.raises(TopicRecreated, match="t was made again"):
        plan_batch(state, ends)
    start_topic(table, writer, topic_id=other.hex())
    add_batch(table, writer, range(3), generation=1)
    state = table.latest()
    assert state is not None
    assert (state.positions["t"].generation, state.position("t", 0)) == (1, 3)
    assert deltalake.DeltaTable(str(table.path)).transaction_version(P0) == 5


def test_columns_are_added_and_keep_their_types(table: DeltaTable, writer: str) -> None:
    add_batch(table, writer, [0])
    grown = {
        "table_schema": columns(value="string", delay="double"),
        "value_schema": spark_schema(delay="double"),
    }
    state = add_batch(table, writer, [1], more={"delay": [0.5]}, changes=grown)
    assert state.value_schema == grown["value_schema"]
    rows: Any = deltalake.DeltaTable(str(table.path)).to_pyarrow_table(columns=["offset", "delay"])
    assert sorted(map(tuple, map(dict.values, rows.to_pylist()))) == [(0, None), (1, 0.5)]
    visible = [field["name"] for field in json.loads(state.table_schema or "")["fields"]]
    assert visible == ["key", "topic", "partition", "offset", "timestamp", "value", "delay"]
    for changed, error in (
        ({"delay": "string"}, "delay was double and is string"),
        ({"Delay": "double"}, "the columns delay and Delay"),
        ({"a b": "string"}, "cannot have a column 'a b'"),
        ({"nothing": "void"}, "nothing of type void"),
    ):
        with pytest.raises(SchemaConflict, match=error):
            add_batch(table, writer, [2], changes={"table_schema": columns(**changed)})
    assert offsets(table.path) == [0, 1]


def test_structs_get_further_fields(table: DeltaTable, writer: str) -> None:
    def schema(*names: str) -> dict[str, object]:
        fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
        return {"table_schema": columns(nested={"type": "struct", "fields": fields})}

    add_batch(table, writer, [0], more={"nested": [{"a": 1}]}, changes=schema("a"))
    add_batch(table, writer, [1], more={"nested": [{"a": 2, "b": 3}]}, changes=schema("a", "b"))
    rows: Any = deltalake.DeltaTable(str(table.path)).to_pyarrow_table(columns=["nested"])
    assert {tuple(row["nested"].values()) for row in rows.to_pylist()} == {(1, None), (2, 3)}


def test_the_tools_find_the_table_and_its_state(table: DeltaTable, writer: str) -> None:
    add_batch(table, writer, range(5))
    (opened,) = tables_in(table.path.parent)
    row = table_row(opened)
    assert (row["rows"], row["files"], row["topics"], row["commits"]) == (5, 1, "t", 4)
    assert offsets_expected(opened) == 5


def test_a_folder_has_one_format(tmp_path: Path) -> None:
    assert format_of(tmp_path) is None
    make_table(tmp_path / "delta")
    ParquetTable(tmp_path / "parquet").create()
    with pytest.raises(ConfigError, match="is a table of the format delta: take a new path"):
        open_target(tmp_path / "delta", "parquet", "sink")
    with pytest.raises(ConfigError, match="is a table of the format parquet: take a new path"):
        open_target(tmp_path / "parquet", "delta", "sink")


def test_a_backfill_ends_where_the_table_began(table: DeltaTable) -> None:
    writer = table.claim().writer
    start_topic(table, writer, at=10)
    add_batch(table, writer, range(10, 12))
    requested = {TopicPartition("t", 0): Backfill(start=4, next=4, end=10)}
    table.update(writer, lambda state: state.next(0, positions=with_backfills(state, requested)))
    for offset in (4, 7):
        state = table.latest()
        assert state is not None
        assert state.positions["t"].backfills[0].next == offset
        ranges = plan_backfill(state, {"t": TOPIC_ID}, 3)
        file = write_file(table, state.number + 1, "t", range(offset, offset + 3))
        table.update(
            writer,
            lambda newest, file=file, ranges=ranges: newest.next(
                0, files=(file,), positions=with_backfills(newest, after_ranges(newest, ranges))
            ),
        )
    for state in (table.latest(), DeltaTable(table.path, "sink").claim()):
        assert state is not None
        (position,) = state.positions.values()
        assert (position.starts, position.offsets, position.backfills) == ({0: 4}, {0: 12}, {})
    assert offsets(table.path) == [*range(4, 12)]


def test_a_table_of_another_connector_is_refused(table: DeltaTable, writer: str) -> None:
    with pytest.raises(TableRefused, match="the table of the connector sink, and renamed would"):
        DeltaTable(table.path, "renamed").claim()


def with_rows(handle: deltalake.DeltaTable) -> None:
    deltalake.write_deltalake(handle, pa.table({"topic": ["x"]}), mode="append", schema_mode="merge")


def with_a_constraint(handle: deltalake.DeltaTable) -> None:
    handle.alter.add_constraint({"positive": "offset >= 0"})


@pytest.mark.parametrize(
    ("change", "error"),
    [(with_rows, "rows that no sink wrote"), (with_a_constraint, "delta.constraints.positive")],
)
def test_a_table_that_was_there_is_taken_over_only_if_it_is_fit(
    table: DeltaTable, change: Callable[[deltalake.DeltaTable], None], error: str
) -> None:
    change(deltalake.DeltaTable(str(table.path)))
    with pytest.raises(TableRefused, match=error):
        table.claim()


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, "sink")
    table.create(lambda: spark_schema(id="long"), ())
    with pytest.raises(TableRefused, match="columns id, and the first ones"):
        table.claim()


def test_a_binary_partition_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaConflict, match="key is binary"):
        DeltaTable(tmp_path, "sink").create(columns, ["key"])


def test_a_transaction_that_is_gone_is_an_error(table: DeltaTable, writer: str) -> None:
    handle = deltalake.DeltaTable(str(table.path))
    text = handle.metadata().configuration[PROPERTY].replace(TOPIC_ID, "03" * 16)
    handle.alter.set_table_properties({PROPERTY: text}, raise_if_not_exists=False)
    with pytest.raises(PositionLost, match=f"no transaction sink/{id_text('03' * 16)}/0"):
        table.latest()


def test_orphans_are_what_no_commit_names(table: DeltaTable, writer: str) -> None:
    for offset in range(3):
        add_batch(table, writer, [offset])
    assert compact(table).files_before == 3
    orphan = table.path / write_file(table, 5, "t", [9]).path
    later = table.path / write_file(table, 1000, "t", [9]).path
    (table.path / "data" / "of others").mkdir()
    claim = table.claim()
    assert table.collect_orphans(claim) == 1
    assert (orphan.parent.exists(), later.exists()) == (False, True)
    assert len([*(table.path / "data").iterdir()]) == 4 + 2
    assert offsets(table.path) == [0, 1, 2]
    assert table.delete_removed(1 << 60) == 3
    assert offsets(table.path) == [0, 1, 2]
