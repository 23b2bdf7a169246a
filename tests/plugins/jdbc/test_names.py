"""Names of tables and columns with percent signs, quotes, capitals and letters beyond ASCII."""

import pytest
import sqlalchemy as sa

from connect.api import ConnectError, SinkRecord, schema
from plugins.jdbc.sink import JdbcSink
from plugins.jdbc.source import JdbcSource
from tests.plugins.jdbc.conftest import PatientRun

NAMES = ["per%cent", "%s %(id)s 100%%", "we\"ird it's", "back`tick", "Upper żółć", "co:lon a.b (x) [y] q?"]


def quoted(database, name):
    """Return a name as this database's SQL has it."""
    quote = "`" if database.kind == "mariadb" else '"'
    return quote + name.replace(quote, quote * 2) + quote


def rows_of(database, table, *columns):
    names = ", ".join(quoted(database, each) for each in columns)
    order = quoted(database, columns[0])
    with database.engine.connect() as connection:
        statement = sa.text(
            f"SELECT {names} FROM {quoted(database, table)} ORDER BY {order}".replace(":", r"\:")
        )
        return [tuple(row) for row in connection.execute(statement)]


def sink_config(database, table, **more):
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        **database.config, "topics": "t", "table.name.format": quoted(database, table), "auto.create": "true",
        "auto.evolve": "true", "retry.backoff.ms": "0", **keys,
    }  # fmt: skip


def record(offset, value, key=None):
    fields = {name: schema.int64() if type(item) is int else schema.string(optional=True, default="50%")
              for name, item in (value or {}).items()}  # fmt: skip
    return SinkRecord(
        "t", 0, offset, value, key, value_schema=schema.struct(fields) if value else None,
        key_schema=schema.struct({each: schema.int64() for each in key}) if key else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_same_in_table_columns_and_records(database, start, start_sink, name):
    table = database.table() + name
    id, note, later = f"id {name}", f"note {name}", f"later {name}"
    upsert = sink_config(database, table, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    sink = start_sink(JdbcSink, upsert)
    sink.put(
        [record(0, {note: "a"}, {id: 1}), record(1, {note: "b"}, {id: 2}), record(2, {note: "c"}, {id: 3})]
    )
    sink.put([record(3, {note: "d"}, {id: 2})])
    sink.put([record(4, {note: "e", later: "f"}, {id: 1}), record(5, {note: "g", later: "h"}, {id: 4})])
    sink.put([record(6, None, {id: 3}), record(7, None, {id: 9})])
    assert rows_of(database, table, id, note, later) == [(1, "e", "f"), (2, "d", "50%"), (4, "g", "h")]
    update = sink_config(database, table, insert_mode="update", pk_mode="record_value", pk_fields=id)
    start_sink(JdbcSink, update).put([record(0, {id: 1, note: "x"}), record(1, {id: 2, note: "y"})])
    assert rows_of(database, table, id, note) == [(1, "x"), (2, "y"), (4, "g")]

    source = {
        **database.config, "mode": "incrementing", "incrementing.column.name": id, "topic.prefix": "p-",
        "table.whitelist": quoted(database, table), "poll.interval.ms": "0",
    }  # fmt: skip
    records = start(JdbcSource, source, kind=PatientRun).records()
    assert [list(each.value.items()) for each in records] == [
        [(id, 1), (note, "x"), (later, "f")],
        [(id, 2), (note, "y"), (later, "50%")],
        [(id, 4), (note, "g"), (later, "h")],
    ]
    assert records[0].topic == f"p-{table}"
    source["query"] = f"SELECT * FROM {quoted(database, table)}"
    del source["table.whitelist"]
    records = start(JdbcSource, source, kind=PatientRun).records()
    assert [each.value[id] for each in records] == [1, 2, 4]


@pytest.mark.parametrize("names", [("ID", "Name"), ("iD", "ŻÓŁĆ")])
def test_fields_that_differ_in_case_are_the_same_columns_where_the_database_says_so(
    database, start_sink, names
):
    id, note = names
    table = database.table()
    columns = (
        f"{quoted(database, id.lower())} INTEGER PRIMARY KEY, {quoted(database, note.lower())} VARCHAR(10)"
    )
    database.execute(f"CREATE TABLE {quoted(database, table)} ({columns})")
    upsert = sink_config(database, table, insert_mode="upsert", pk_mode="record_key", auto_evolve="false")
    sink = start_sink(JdbcSink, upsert)
    is_same = database.kind == "mariadb" or (database.kind == "sqlite" and note.isascii())
    if not is_same:
        with pytest.raises(ConnectError, match=f"no column .*{note}"):
            sink.put([record(0, {note: "a"}, {id: 1})])
        return
    sink.put([record(0, {note: "a"}, {id: 1}), record(1, {note: "b"}, {id: 2})])
    sink.put([record(2, {note: "c"}, {id: 2})])
    assert rows_of(database, table, id, note) == [(1, "a"), (2, "c")]


def test_names_without_quotes_are_the_lower_case_columns_of_postgresql(postgres, start_sink):
    table = postgres.table()
    postgres.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, note TEXT)")
    more = {"quote_sql_identifiers": "never", "insert_mode": "upsert", "pk_mode": "record_key"}
    start_sink(JdbcSink, sink_config(postgres, table, **more)).put([record(0, {"Note": "a"}, {"ID": 1})])
    assert postgres.rows(f"SELECT id, note FROM {table}") == [(1, "a")]


def test_two_fields_of_one_column_are_named(database, start_sink):
    sink = start_sink(JdbcSink, sink_config(database, table := database.table()))
    both = [record(0, {"id": 1, "ID": 2})]
    if database.kind == "postgresql":
        sink.put(both)
        assert rows_of(database, table, "id", "ID") == [(1, 2)]
    else:
        with pytest.raises(ConnectError, match=r"fields id and ID are one column.*ReplaceField"):
            sink.put(both)


@pytest.mark.parametrize("name", ["é" * 31, "é" * 31 + "a"])
def test_names_as_long_as_postgresql_takes_them(postgres, start_sink, name):
    sink = start_sink(JdbcSink, sink_config(postgres, name))
    sink.put([record(0, {name: 1})])
    assert rows_of(postgres, name, name) == [(1,)]
    postgres.execute(f'DROP TABLE "{name}"')


def test_a_name_that_postgresql_would_cut_is_refused(postgres, start_sink):
    long = "é" * 32
    with pytest.raises(ConnectError, match=rf"table {long} has a name of 64 bytes.*table\.name\.format"):
        start_sink(JdbcSink, sink_config(postgres, long)).put([record(0, {"id": 1})])
    table = postgres.table()
    sink = start_sink(JdbcSink, sink_config(postgres, table))
    with pytest.raises(ConnectError, match=rf"column {long} has a name of 64 bytes.*ReplaceField"):
        sink.put([record(0, {"id": 1, long: 2})])
    sink.put([record(0, {"id": 1})])
    with pytest.raises(ConnectError, match=rf"column {long} has a name of 64 bytes"):
        sink.put([record(1, {"id": 1, long: "x"})])
