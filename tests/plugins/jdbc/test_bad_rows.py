"""Rows of a source that do not convert: each is reported with its place, and the others are read."""

import datetime as dt
import json

import pytest

from connect.api import DataError
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from plugins.jdbc.source import JdbcSource, JdbcSourceTask
from tests.connect.conftest import FakeProducer, TaskHarness
from tests.connect.errors.support import DEAD, letters
from tests.plugins.jdbc.conftest import PatientRun

BAD = {
    "postgresql": {
        "DATE": "'infinity'",
        "TIMESTAMP": "'20000-01-01 00:00:00'",
        "TIMESTAMPTZ": "'0044-03-15 12:00:00 BC'",
        "TIME": "'24:00:00'",
        "NUMERIC(10, 2)": "'NaN'",
        "TIMESTAMP[]": "'{2024-01-01,-infinity}'",
    },
    "mariadb": {
        "DATE": "'0000-00-00'",
        "DATETIME": "'2024-00-00 00:00:00'",
        "TIME": "'30:00:00'",
    },
    "sqlite": {
        "DATE": "'tomorrow'",
        "TIMESTAMP": "'2024-02-30 00:00:00'",
        "TIME": "'noon'",
        "REAL": "'x'",
        "NUMERIC(10, 2)": "'x'",
        "BOOLEAN": "7",
    },
}
CASES = [(kind, column) for kind, columns in BAD.items() for column in columns]


def config(database, table, **more):
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        **database.config, "mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": table,
        "topic.prefix": "p-", "poll.interval.ms": "0", **keys,
    }  # fmt: skip


def insert(database, table, values):
    """Insert literals that a strict MariaDB would refuse."""
    loosely = ["SET sql_mode = ''"] if database.kind == "mariadb" else []
    database.execute(*loosely, *(f"INSERT INTO {table} (x) VALUES ({value})" for value in values))


@pytest.fixture
def read(start):
    """Starts a source of a table whose column x has the values."""

    def begin(database, column, values, **more):
        table = database.table()
        database.execute(f"CREATE TABLE {table} (id {database.serial}, x {column})")
        insert(database, table, values)
        return start(JdbcSource, config(database, table, **more), kind=PatientRun), table

    return begin


def reports(run):
    return [(record.value["id"], str(error)) for record, error in run.tasks[0].context.reported]


@pytest.mark.parametrize(("kind", "column"), CASES)
def test_a_bad_value_is_reported_with_its_place_and_other_rows_are_read(request, read, kind, column):
    database = request.getfixturevalue({"postgresql": "postgres"}.get(kind, kind))
    run, table = read(database, column, ["NULL", BAD[kind][column], "NULL"])
    records = run.records()
    assert [record.value for record in records] == [{"id": 1, "x": None}, {"id": 3, "x": None}]
    assert records[-1].source_offset == {"incrementing": 3}
    ((number, error),) = reports(run)
    assert number == 2
    assert f"{table}.x: " in error and "in the row with id=2 does not convert" in error
    assert "errors.tolerance=all" in error
    (record, cause) = run.tasks[0].context.reported[0]
    assert isinstance(cause, DataError)
    assert (record.topic, record.source_partition) == (f"p-{table}", {"table": table})


ANY = {"postgresql": ("DATE", "'infinity'"), "mariadb": ("DATE", "'0000-00-00'"), "sqlite": ("DATE", "'x'")}


def test_a_restart_does_not_read_bad_rows_again(database, read):
    column, bad = ANY[database.kind]
    run, table = read(database, column, ["'2024-01-01'", bad, bad, bad], batch_max_rows="2")
    assert [record.value["x"] for record in run.records()] == [dt.date(2024, 1, 1)]
    run.poll()  # the batch without a record
    assert [number for number, _ in reports(run)] == [2, 3, 4]
    run.commit()
    again = run.again()
    insert(database, table, ["NULL"])
    assert [record.value["id"] for record in again.records()] == [5]
    assert reports(again) == []
    again.stop()


def test_bad_rows_of_a_table_without_a_key_are_shown(database, start):
    table, (column, bad) = database.table(), ANY[database.kind]
    database.execute(f"CREATE TABLE {table} (name VARCHAR(10), x {column})")
    loosely = ["SET sql_mode = ''"] if database.kind == "mariadb" else []
    database.execute(*loosely, f"INSERT INTO {table} VALUES ('a', {bad}), ('b', NULL)")
    run = start(JdbcSource, config(database, table, mode="bulk"))
    assert [record.value["name"] for record in run.poll()] == ["b"]
    ((_, error),) = run.tasks[0].context.reported
    assert "in the row ('a', " in str(error)


def test_a_time_that_is_no_position_fails_the_task_with_its_remedy(postgres, start):
    table = postgres.table()
    postgres.execute(
        f"CREATE TABLE {table} (at TIMESTAMP NOT NULL)", f"INSERT INTO {table} VALUES ('-infinity')"
    )
    more = {"mode": "timestamp", "timestamp_column_name": "at"}
    run = start(JdbcSource, config(postgres, table, **more))
    with pytest.raises(DataError, match=rf"{table}: the timestamp '-infinity' is no position.*initial"):
        run.poll()
    run = start(JdbcSource, config(postgres, table, **more, timestamp_initial="0"))
    assert run.records() == []


def test_a_value_that_an_enumeration_has_got_later_is_read(postgres, start):
    table = postgres.table()
    postgres.execute(
        f"CREATE TYPE {table}_mood AS ENUM ('glad')",
        f"CREATE TABLE {table} (id {postgres.serial}, x {table}_mood)",
        f"INSERT INTO {table} (x) VALUES ('glad')",
    )
    run = start(JdbcSource, config(postgres, table))
    assert [record.value["x"] for record in run.records()] == ["glad"]
    postgres.execute(f"ALTER TYPE {table}_mood ADD VALUE 'sad'")
    postgres.execute(f"INSERT INTO {table} (x) VALUES ('sad')")
    assert [record.value["x"] for record in run.records()] == ["sad"]


@pytest.fixture
def worker_task(sqlite, monkeypatch):
    """Starts a worker's task that reads a table of three rows, of which the second one is bad."""
    fake = type("Producer", (FakeProducer,), {})
    monkeypatch.setattr("connect.runtime.source_task.BatchProducer", fake)
    monkeypatch.setattr("connect.runtime.errors.dead_letters.BatchProducer", fake)
    table = sqlite.table()
    sqlite.execute(f"CREATE TABLE {table} (id {sqlite.serial}, x DATE)")
    insert(sqlite, table, ["NULL", "'soon'", "NULL"])
    harness = TaskHarness()
    harness.client.topics[f"p-{table}"] = 1
    plan = {**config(sqlite, table), "tables": json.dumps([[None, table]])}
    return harness, lambda errors: WorkerSourceTask(
        harness.setting(**plan, **errors), JdbcSourceTask(), harness.store
    )


async def test_a_worker_leaves_a_bad_row_out_and_writes_it_to_the_dead_letters(worker_task):
    harness, start = worker_task
    task = start(DEAD)
    task.launch()
    await harness.until(lambda: any(b'"incrementing":3' in each for each in harness.store.offsets.values()))
    await task.stop()
    records, dead = harness.client.producers
    assert [json.loads(value)["id"] for _, _, batch in records.sent for _, _, value, _ in batch] == [1, 3]
    (letter,) = letters(dead)
    assert json.loads(letter.value)["value"] == {"id": 2, "x": "soon"}
    assert b"in the row with id=2 does not convert" in letter.context["exception.message"]
    assert task.values()["task-error-metrics"]["total-records-skipped"] == 1


async def test_a_worker_without_tolerance_fails_with_table_column_and_key(worker_task):
    harness, start = worker_task
    task = start({})
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert ".x: 'soon' in the row with id=2 does not convert" in task.status.trace
    await task.stop()
    assert harness.store.offsets == {}
