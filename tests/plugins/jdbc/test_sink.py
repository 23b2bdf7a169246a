"""The sink: modes, keys, tables, errors, and exactly once."""

import datetime as dt
from decimal import Decimal

import pytest

from connect.api import (
    ConfigError,
    ConnectError,
    DataError,
    PartitionsFenced,
    RetriableError,
    SinkRecord,
    TopicPartition,
    schema,
)
from connect.runtime.plugins import connector_class
from plugins.jdbc.sink import JdbcSink
from plugins.jdbc.tables import TableName

ROW = schema.struct({"id": schema.int32(), "name": schema.string(optional=True)})


def config(database, table, **more):
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        **database.config, "topics": "t", "table.name.format": table, "auto.create": "true",
        "retry.backoff.ms": "0", **keys,
    }  # fmt: skip


UPSERT = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}


def record(offset, value, key=None, **more):
    shape = None if value is None else ROW
    return SinkRecord("t", 0, offset, value, key, value_schema=shape, **more)


def people(*names):
    return [record(i, {"id": i, "name": name}) for i, name in enumerate(names)]


def test_kafka_names_mean_ours():
    assert connector_class("io.confluent.connect.jdbc.JdbcSinkConnector") is JdbcSink


def test_rows_are_inserted_into_a_new_table(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table))
    sink.put(people("a", None, "c"))
    assert sink.flush() == {TopicPartition("t", 0): 3}
    assert database.rows(f"SELECT id, name FROM {table} ORDER BY id") == [(0, "a"), (1, None), (2, "c")]


def test_upserts_and_deletes_by_key(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table, **UPSERT, delete_enabled="true"))
    named = schema.struct({"name": schema.string(optional=True)})

    def change(offset, key, name):
        value = None if name is None else {"name": name}
        return SinkRecord("t", 0, offset, value, key, key_schema=schema.int64(), value_schema=value and named)

    sink.put([change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "c"), change(3, 3, "d")])
    sink.put(
        [change(4, 2, None), change(5, 3, "e"), change(6, 9, None), change(7, 2, "f"), change(8, 1, None)]
    )
    assert database.rows(f"SELECT id, name FROM {table} ORDER BY id") == [(2, "f"), (3, "e")]
    sink.put([change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "c"), change(3, 3, "d")])  # delivered again
    assert database.rows(f"SELECT id, name FROM {table} ORDER BY id") == [(1, "c"), (2, "b"), (3, "d")]


def test_keys_of_topic_partition_and_offset(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table, insert_mode="upsert", pk_mode="kafka"))
    for _ in range(2):
        sink.put(people("a", "b"))
    rows = database.rows(f"SELECT __connect_topic, __connect_partition, __connect_offset, name FROM {table}")
    assert sorted(rows) == [("t", 0, 0, "a"), ("t", 0, 1, "b")]


def test_keys_from_the_value_and_only_updates(database, start_sink):
    table = database.table()
    database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name VARCHAR(10))")
    database.execute(f"INSERT INTO {table} VALUES (0, 'old')")
    more = {"insert_mode": "update", "pk_mode": "record_value", "pk_fields": "id"}
    start_sink(JdbcSink, config(database, table, **more)).put(people("a", "b"))
    assert database.rows(f"SELECT id, name FROM {table}") == [(0, "a")]


def test_new_fields_become_columns(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table, auto_evolve="true"))
    wider = schema.struct({**ROW.fields, "size": schema.int64(optional=True)})
    both = [
        *people("a"),
        SinkRecord("t", 0, 1, {"id": 1, "name": "b", "size": 7}, value_schema=wider),
        *people("c"),
    ]
    sink.put(both)
    assert sorted(database.rows(f"SELECT id, name, size FROM {table}"), key=str) == [
        (0, "a", None), (0, "c", None), (1, "b", 7),
    ]  # fmt: skip


def test_a_missing_table_or_column_is_named(database, start_sink):
    table = database.table()
    with pytest.raises(ConnectError, match=rf"{table} does not exist.*auto\.create"):
        start_sink(JdbcSink, config(database, table, auto_create="false")).put(people("a"))
    database.execute(f"CREATE TABLE {table} (id INT)")
    sink = start_sink(JdbcSink, config(database, table))
    with pytest.raises(ConnectError, match=r"no column name.*auto\.evolve"):
        sink.put(people("a"))
    sink.task._config.auto_evolve = True
    needed = schema.struct({"id": schema.int32(), "must": schema.string()})
    with pytest.raises(ConnectError, match="make the field optional"):
        sink.put([SinkRecord("t", 0, 0, {"id": 1, "must": "x"}, value_schema=needed)])


def test_fields_whitelist_and_values_without_a_schema(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table, fields_whitelist="n,x,nested"))
    sink.put([SinkRecord("t", 0, 0, {"n": 2**53 + 1, "x": 0.5, "other": 1, "nested": {"a": [1]}})])
    assert database.rows(f"SELECT n, x, nested FROM {table}") == [(2**53 + 1, 0.5, '{"a":[1]}')]


VALUES = {
    "i8": (schema.int8(), -5),
    "i64": (schema.int64(), 2**63 - 1),
    "f32": (schema.float32(), 1.5),
    "f64": (schema.float64(), 0.1),
    "flag": (schema.boolean(), True),
    "s": (schema.string(), "é%s\\'"),
    "b": (schema.bytes_(), b"\x00\xff"),
    "d": (schema.decimal_(2), Decimal("12345678901234567.89")),
    "day": (schema.date(), dt.date(2024, 2, 29)),
    "clock": (schema.time(), dt.time(1, 2, 3, 4000)),
    "moment": (schema.timestamp(), dt.datetime(2024, 7, 1, 10, 0, 0, 5000, dt.UTC)),
}


def test_values_come_back_through_the_source(database, start, start_sink):
    from plugins.jdbc.source import JdbcSource

    table = database.table()
    shape = schema.struct({name: field for name, (field, _) in VALUES.items()})
    value = {name: value for name, (_, value) in VALUES.items()}
    zone = {"db_timezone": "Europe/Berlin"}
    start_sink(JdbcSink, config(database, table, **zone)).put(
        [SinkRecord("t", 0, 0, value, value_schema=shape)]
    )
    source = {
        **database.config, "mode": "bulk", "query": f"SELECT * FROM {table}", "topic.prefix": "p",
        "db.timezone": "Europe/Berlin",
    }  # fmt: skip
    if database.kind == "sqlite":
        source.pop("query")
        source["table.whitelist"] = table
    (back,) = start(JdbcSource, source).poll()
    if database.kind != "postgresql":
        value["flag"] = bool(back.value["flag"]) and back.value["flag"]
    if database.kind == "sqlite":  # its NUMERIC is a double
        back.value["d"] = value["d"]
    assert back.value == value


class Reporter:
    def __init__(self):
        self.reports = []

    def report(self, record, error):
        self.reports.append((record.offset, str(error)))


@pytest.fixture
def narrow(database):
    """A table that refuses the name `bad`."""
    table = database.table()
    database.execute(f"CREATE TABLE {table} (id INTEGER, name VARCHAR(10) CHECK (name <> 'bad'))")
    return table


def test_a_bad_row_fails_the_task_with_its_place(database, start_sink, narrow):
    sink = start_sink(JdbcSink, config(database, narrow))
    with pytest.raises(DataError, match="t-0 at offset 1: the database refuses the row"):
        sink.put(people("a", "bad", "c"))
    assert database.rows(f"SELECT * FROM {narrow}") == []


def test_bad_rows_are_reported_where_reports_are_taken(database, start_sink, narrow, monkeypatch):
    sink = start_sink(JdbcSink, config(database, narrow))
    reporter = Reporter()
    monkeypatch.setattr(type(sink.task.context), "errant_record_reporter", lambda _: reporter, raising=False)
    sink.put([*people("a", "bad", "c"), record(3, None), SinkRecord("t", 0, 4, "text")])
    assert database.rows(f"SELECT id FROM {narrow} ORDER BY id") == [(0,), (2,)]
    assert sorted(offset for offset, _ in reporter.reports) == [1, 3, 4]


EXACTLY_ONCE = {"delivery": "exactly_once"}


def test_offsets_are_kept_with_the_rows(database, start_sink):
    table = database.table()
    sink = start_sink(JdbcSink, config(database, table, **EXACTLY_ONCE), name=table)
    sink.put(people("a", "b"))
    sink.stop()  # nothing was committed to the group
    again = start_sink(JdbcSink, config(database, table, **EXACTLY_ONCE), name=table)
    again.put(people("a", "b", "c"))
    assert again.task.context.rewinds == {TopicPartition("t", 0): 2}
    assert database.rows(f"SELECT name FROM {table} ORDER BY id") == [("a",), ("b",), ("c",)]


def test_an_earlier_owner_is_fenced(database, start_sink):
    table = database.table()
    old = start_sink(JdbcSink, config(database, table, **EXACTLY_ONCE), name=table)
    old.put(people("a"))
    new = start_sink(JdbcSink, config(database, table, **EXACTLY_ONCE), name=table)
    new.put(people("a", "b"))
    with pytest.raises(PartitionsFenced, match="another task"):
        old.put([record(1, {"id": 1, "name": "late"})])
    assert database.rows(f"SELECT name FROM {table} ORDER BY id") == [("a",), ("b",)]


def test_rows_and_offsets_are_one_transaction(database, start_sink, narrow):
    sink = start_sink(JdbcSink, config(database, narrow, **EXACTLY_ONCE), name=narrow)
    sink.put(people("a"))
    with pytest.raises(DataError):
        sink.put([record(1, {"id": 1, "name": "b"}), record(2, {"id": 2, "name": "bad"})])
    offsets = database.rows(f"SELECT offset FROM millstream_offsets WHERE connector = '{narrow}'".replace(
        "offset FROM", "`offset` FROM" if database.kind == "mariadb" else '"offset" FROM'
    ))  # fmt: skip
    assert offsets == [(1,)]
    assert database.rows(f"SELECT id FROM {narrow}") == [(0,)]


def test_a_database_that_is_away_is_tried_max_retries_times(start_sink):
    away = {"connection.url": "jdbc:postgresql://127.0.0.1:1/x", "topics": "t", "max.retries": "2"}
    sink = start_sink(JdbcSink, {**away, "retry.backoff.ms": "0"})
    for _ in range(2):
        with pytest.raises(RetriableError):
            sink.put(people("a"))
    with pytest.raises(ConnectError, match=r"max\.retries=2") as caught:
        sink.put(people("a"))
    assert not isinstance(caught.value, RetriableError)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("delete.enabled", {"delete.enabled": "true"}),
        ("insert.mode", {"insert.mode": "upsert"}),
        ("pk.fields", {"pk.mode": "kafka", "pk.fields": "a"}),
        ("table.types", {"table.types": "SYNONYM"}),
    ],
)
def test_settings_that_contradict_each_other_are_refused(key, more):
    with pytest.raises(ConfigError, match=key):
        JdbcSink.CONFIG.parse({"connection.url": "jdbc:sqlite:x", **more})


def test_keys_that_are_equal_only_in_the_database_are_written_one_by_one(postgres, start_sink):
    table = postgres.table()
    postgres.execute(f"CREATE TABLE {table} (id CHAR(5) PRIMARY KEY, name TEXT)")
    shape = schema.struct({"id": schema.string(), "name": schema.string()})
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
    rows = [{"id": "a", "name": "first"}, {"id": "a ", "name": "second"}]
    start_sink(JdbcSink, config(postgres, table, **more)).put(
        [SinkRecord("t", 0, n, row, value_schema=shape) for n, row in enumerate(rows)]
    )
    assert postgres.rows(f"SELECT name FROM {table}") == [("second",)]


UNWRITABLE = {
    "sqlite": ("INTEGER", schema.int64(), 2**70),
    "postgresql": ("TEXT", schema.string(), "a\0b"),
    "mariadb": ("DOUBLE", schema.float64(), float("nan")),
}


def test_a_value_that_the_database_cannot_hold_is_the_rows_fault(database, start_sink):
    table, (kind, field, value) = database.table(), UNWRITABLE[database.kind]
    database.execute(f"CREATE TABLE {table} (x {kind})")
    sink = start_sink(JdbcSink, config(database, table))
    with pytest.raises(DataError, match="t-0 at offset 4: the database refuses the row"):
        sink.put([SinkRecord("t", 0, 4, {"x": value}, value_schema=schema.struct({"x": field}))])


def test_a_lost_connection_is_opened_again_and_rows_are_there_once(server_database, start_sink):
    table = server_database.table()
    sink = start_sink(JdbcSink, config(server_database, table))
    sink.put(people("a"))
    driver = sink.task._connection.connection.driver_connection
    with server_database.server.admin.connect() as admin:
        if server_database.kind == "postgresql":
            admin.exec_driver_sql(f"SELECT pg_terminate_backend({driver.info.backend_pid})")
        else:
            admin.exec_driver_sql(f"KILL {driver.thread_id()}")
    later = [record(1, {"id": 1, "name": "b"})]
    with pytest.raises(RetriableError, match="does not answer"):
        sink.put(later)
    sink.put(later)
    assert server_database.rows(f"SELECT name FROM {table} ORDER BY id") == [("a",), ("b",)]


def test_a_full_database_is_tried_again_and_blames_no_row(sqlite, start_sink):
    table = sqlite.table()
    sink = start_sink(JdbcSink, config(sqlite, table))
    sink.put(people("a"))
    sink.task._connection.exec_driver_sql("PRAGMA max_page_count = 1")
    sink.task._connection.rollback()
    with pytest.raises(RetriableError, match="full"):
        sink.put([record(1, {"id": 1, "name": "x" * 1_000_000})])


def test_an_update_of_a_key_alone_changes_nothing(database, start_sink):
    table = database.table()
    database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)")
    more = {"insert_mode": "update", "pk_mode": "record_value", "pk_fields": "id"}
    shape = schema.struct({"id": schema.int32()})
    start_sink(JdbcSink, config(database, table, **more)).put(
        [SinkRecord("t", 0, 0, {"id": 1}, value_schema=shape)]
    )
    assert database.rows(f"SELECT id FROM {table}") == [(1,)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("orders", (None, "orders")),
        ("sales.orders", ("sales", "orders")),
        ('"sales"."or.ders"', ("sales", "or.ders")),
        ('"a ""quoted"" name"', (None, 'a "quoted" name')),
        ("`db`.`a``b`", ("db", "a`b")),
    ],
)
def test_names_of_tables(text, name):
    assert TableName.parsed(text) == name


def test_a_deferrable_key_fails_the_task_and_is_not_tried_again(postgres, start_sink):
    table = postgres.table()
    postgres.execute(f"CREATE TABLE {table} (id INTEGER, name TEXT, UNIQUE (id) DEFERRABLE)")
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
    with pytest.raises(ConnectError, match="deferrable") as caught:
        start_sink(JdbcSink, config(postgres, table, **more)).put(people("a"))
    assert not isinstance(caught.value, RetriableError)
