"""The source: modes, types, offsets, tables, and errors."""

import datetime as dt
import threading
from decimal import Decimal
from functools import partial

import pytest

from connect.api import ConfigError, ConnectError, RetriableError, Type, schema
from connect.runtime.plugins import connector_class
from connect.testing import MemoryOffsetStore
from plugins.jdbc.database import parse_url
from plugins.jdbc.position import Position
from plugins.jdbc.source import JdbcSource
from tests.plugins.jdbc.conftest import PatientRun

NULL = {"optional": True}
INCREMENTING = {"mode": "incrementing", "incrementing.column.name": "id"}


def config(database, table, **more):
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return {
        **database.config, **INCREMENTING, "table.whitelist": table,
        "topic.prefix": "p-", "poll.interval.ms": "0", **keys,
    }  # fmt: skip


def fill(database, count=5):
    table = database.table()
    database.execute(
        f"CREATE TABLE {table} (id {database.serial}, n INT NOT NULL, at {database.now})",
        *(f"INSERT INTO {table} (n) VALUES ({n})" for n in range(count)),
    )
    return table


@pytest.fixture
def start(start):
    """Starts sources whose rows come with the next poll, also where the database needs a moment for it."""
    return partial(start, kind=PatientRun)


def numbers(records):
    return [record.value["n"] for record in records]


def test_kafka_names_mean_ours():
    assert connector_class("io.confluent.connect.jdbc.JdbcSourceConnector") is JdbcSource


def test_new_rows_come_after_a_restart_and_old_ones_do_not(database, start):
    table = fill(database)
    run = start(JdbcSource, config(database, table, batch_max_rows="2"))
    records = run.records()
    assert numbers(records) == [0, 1, 2, 3, 4]
    assert {record.topic for record in records} == {f"p-{table}"}
    assert records[-1].source_partition == {"table": table}
    assert records[-1].source_offset == {"incrementing": 5}
    run.commit()
    database.execute(f"INSERT INTO {table} (n) VALUES (7)")
    again = run.again()
    assert numbers(again.records()) == [7]
    again.stop()


def test_the_offsets_of_confluents_connector_are_taken_over(database, start):
    table = fill(database)
    run = start(JdbcSource, config(database, table))
    key = run._offsets.key({"protocol": "1", "table": table})
    run.store.offsets[key] = run._offsets.encode({"incrementing": 3})
    run = start(JdbcSource, config(database, table), store=run.store)
    assert numbers(run.records()) == [3, 4]


def test_bulk_reads_all_rows_again(database, start):
    table = fill(database, 3)
    run = start(JdbcSource, config(database, table, mode="bulk"))
    assert numbers(run.poll()) == numbers(run.poll()) == [0, 1, 2]


def test_rows_of_equal_times_are_not_lost_between_batches_and_restarts(database, start):
    table = database.table()
    database.execute(
        f"CREATE TABLE {table} (id {database.serial}, n INT NOT NULL, at {database.now})",
        *(
            f"INSERT INTO {table} (n, at) VALUES ({n}, '2024-01-01 00:00:0{second}')"
            for n, second in enumerate([1, 1, 2, 2, 2, 2, 2, 3])
        ),
    )
    more = {"mode": "timestamp", "timestamp_column_name": "at", "batch_max_rows": "3"}
    run = start(JdbcSource, config(database, table, **more))
    first = run.poll()
    assert numbers(first) == ([0, 1] if database.kind == "sqlite" else [0, 1, 2])
    assert first[-1].source_offset == Position(dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC)).offset()
    run.commit()
    run = start(JdbcSource, config(database, table, **more), store=run.store)
    assert numbers(run.records()) == [2, 3, 4, 5, 6, 7]
    run.commit()
    assert run.records() == []


def test_both_columns_are_exact_among_equal_times(database, start):
    table = database.table()
    database.execute(
        f"CREATE TABLE {table} (id {database.serial}, n INT NOT NULL, at {database.now})",
        *(f"INSERT INTO {table} (n, at) VALUES ({n}, '2024-01-01 00:00:01')" for n in range(5)),
    )
    more = {"mode": "timestamp+incrementing", "timestamp_column_name": "at", "batch_max_rows": "2"}
    run = start(JdbcSource, config(database, table, **more))
    assert numbers(run.poll()) == [0, 1]
    run.commit()
    run = start(JdbcSource, config(database, table, **more), store=run.store)
    assert numbers(run.records()) == [2, 3, 4]
    database.execute(f"UPDATE {table} SET at = '2024-01-01 00:00:02' WHERE n = 1")
    assert numbers(run.records()) == [1]
    assert run.records() == []


def test_the_first_timestamp_that_is_not_null_counts(database, start):
    table = database.table()
    database.execute(
        f"CREATE TABLE {table} (n INT NOT NULL, changed TIMESTAMP NULL, made {database.now})",
        f"INSERT INTO {table} VALUES (1, NULL, '2024-01-01 00:00:02')",
        f"INSERT INTO {table} VALUES (2, '2024-01-01 00:00:01', '2024-01-01 00:00:03')",
    )
    run = start(JdbcSource, config(database, table, mode="timestamp", timestamp_column_name="changed,made"))
    records = run.records()
    assert numbers(records) == [2, 1]
    assert records[-1].source_offset == {"timestamp": 1704067202000, "timestamp_nanos": 0}


def test_a_start_time_leaves_older_rows_out(database, start):
    table = database.table()
    database.execute(
        f"CREATE TABLE {table} (n INT NOT NULL, at {database.now})",
        *(f"INSERT INTO {table} VALUES ({n}, '2024-01-01 00:00:0{n}')" for n in (1, 2, 3)),
    )
    more = {"mode": "timestamp", "timestamp_column_name": "at", "timestamp_initial": "1704067202000"}
    assert numbers(start(JdbcSource, config(database, table, **more)).records()) == [3]
    more["timestamp_initial"] = "-1"
    assert start(JdbcSource, config(database, table, **more)).records() == []


def test_a_query_is_read(database, start):
    table = fill(database)
    more = config(database, table, query=f"SELECT id, n FROM {table} WHERE n <> 2")
    del more["table.whitelist"]
    records = start(JdbcSource, more).records()
    assert [record.value for record in records] == [{"id": i + 1, "n": i} for i in (0, 1, 3, 4)]
    assert {record.topic for record in records} == {"p-"}
    assert records[0].value_schema.fields["n"].type in (Type.INT32, Type.INT64)


def test_numbers_of_32_bits_in_a_query_are_exact(server_database, start):
    kind = "FLOAT" if server_database.kind == "mariadb" else "REAL"
    query = f"SELECT CAST(x AS {kind}) AS x FROM (SELECT 1.2345678 AS x UNION ALL SELECT 0.1) AS y"
    more = config(server_database, "", mode="bulk", query=query)
    del more["table.whitelist"]
    first, second = start(JdbcSource, more).poll()
    assert (first.value, second.value) == ({"x": 1.2345678}, {"x": 0.1})
    assert first.value_schema.fields["x"] == schema.float32(**NULL)


TYPES = {
    "postgresql": {
        "a SMALLINT NOT NULL": ("1", 1, schema.int16()),
        "b INTEGER": ("2", 2, schema.int32(**NULL)),
        "c BIGINT": ("9007199254740993", 9007199254740993, schema.int64(**NULL)),
        "d NUMERIC(20, 4)": ("1234567890123456.5", Decimal("1234567890123456.5"), schema.decimal_(4, **NULL)),
        "e REAL": ("1.2345678", 1.2345678, schema.float32(**NULL)),
        "f DOUBLE PRECISION": ("0.1", 0.1, schema.float64(**NULL)),
        "g BOOLEAN": ("true", True, schema.boolean(**NULL)),
        "h VARCHAR(10)": ("'é'", "é", schema.string(**NULL)),
        "i BYTEA": (r"'\x00ff'", b"\x00\xff", schema.bytes_(**NULL)),
        "j DATE": ("'2024-02-29'", dt.date(2024, 2, 29), schema.date(**NULL)),
        "k TIME": ("'12:34:56.789'", dt.time(12, 34, 56, 789000), schema.time(**NULL)),
        "l TIMESTAMP": (
            "'2024-07-01 12:00:00'", dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC), schema.timestamp(**NULL),
        ),
        "m TIMESTAMPTZ": (
            "'2024-07-01 12:00:00+05'", dt.datetime(2024, 7, 1, 7, tzinfo=dt.UTC), schema.timestamp(**NULL),
        ),
        "o UUID": (
            "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            schema.string(**NULL),
        ),
        "p JSONB": ("""'{"a": 1.10}'""", '{"a": 1.10}', schema.string(**NULL)),
        "q INTEGER[]": ("'{1,NULL,3}'", [1, None, 3], schema.array(schema.int32(**NULL), **NULL)),
        "r INTERVAL": ("'1 day'", "1 day", schema.string(**NULL)),
    },
    "mariadb": {
        "a TINYINT NOT NULL": ("-1", -1, schema.int8()),
        "a2 TINYINT UNSIGNED": ("255", 255, schema.int16(**NULL)),
        "b INT UNSIGNED": ("4294967295", 4294967295, schema.int64(**NULL)),
        "c BIGINT": ("9007199254740993", 9007199254740993, schema.int64(**NULL)),
        "d DECIMAL(20, 4)": ("1234567890123456.5", Decimal("1234567890123456.5"), schema.decimal_(4, **NULL)),
        "e FLOAT": ("1.2345678", 1.2345678, schema.float32(**NULL)),
        "e2 FLOAT": ("16777215", 16777215.0, schema.float32(**NULL)),
        "e3 FLOAT": ("-0.1", -0.1, schema.float32(**NULL)),
        "f DOUBLE": ("0.1", 0.1, schema.float64(**NULL)),
        "h VARCHAR(10)": ("'é'", "é", schema.string(**NULL)),
        "i BLOB": ("x'00ff'", b"\x00\xff", schema.bytes_(**NULL)),
        "j DATE": ("'2024-02-29'", dt.date(2024, 2, 29), schema.date(**NULL)),
        "k TIME(3)": ("'12:34:56.789'", dt.time(12, 34, 56, 789000), schema.time(**NULL)),
        "l DATETIME": (
            "'2024-07-01 12:00:00'", dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC), schema.timestamp(**NULL),
        ),
        "m TIMESTAMP NULL": (
            "'2024-07-01 12:00:00'", dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC), schema.timestamp(**NULL),
        ),
        "o ENUM('x', 'y')": ("'y'", "y", schema.string(**NULL)),
    },
    "sqlite": {
        "a INTEGER NOT NULL": ("9007199254740993", 9007199254740993, schema.int64()),
        "b REAL": ("0.1", 0.1, schema.float64(**NULL)),
        "c TEXT": ("'é'", "é", schema.string(**NULL)),
        "d BLOB": ("x'00ff'", b"\x00\xff", schema.bytes_(**NULL)),
        "e DATE": ("'2024-02-29'", dt.date(2024, 2, 29), schema.date(**NULL)),
        "f TIMESTAMP": (
            "'2024-07-01 12:00:00'", dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC), schema.timestamp(**NULL),
        ),
        "g BOOLEAN": ("1", True, schema.boolean(**NULL)),
    },
}  # fmt: skip


def test_types_have_schemas(database, start):
    table, types = database.table(), TYPES[database.kind]
    not_null = next(iter(types))
    database.execute(
        f"CREATE TABLE {table} ({', '.join(types)})",
        f"INSERT INTO {table} VALUES ({', '.join(literal for literal, _, _ in types.values())})",
        f"INSERT INTO {table} ({not_null.split()[0]}) VALUES (5)",
    )
    run = start(JdbcSource, config(database, table, mode="bulk", db_timezone="Europe/Berlin"))
    full, empty = run.poll()
    names = [text.split()[0] for text in types]
    assert full.value == {name: value for name, (_, value, _) in zip(names, types.values(), strict=True)}
    assert dict(full.value_schema.fields) == {
        name: field for name, (_, _, field) in zip(names, types.values(), strict=True)
    }
    assert empty.value == {**dict.fromkeys(names), "a": 5}
    for record in (full, empty):
        record.value_schema.check(record.value)


@pytest.mark.parametrize(
    ("mapping", "column", "kind", "value"),
    [
        ("none", "NUMERIC(5, 0)", schema.decimal_(0), Decimal(7)),
        ("precision_only", "NUMERIC(5, 0)", schema.int32(), 7),
        ("precision_only", "NUMERIC(5, 2)", schema.decimal_(2), Decimal("7.00")),
        ("best_fit", "NUMERIC(2, 0)", schema.int8(), 7),
        ("best_fit", "NUMERIC(18, 0)", schema.int64(), 7),
        ("best_fit", "NUMERIC(19, 0)", schema.decimal_(0), Decimal(7)),
        ("best_fit", "NUMERIC(5, 2)", schema.float64(), 7.0),
        ("best_fit", "NUMERIC(20, 2)", schema.decimal_(2), Decimal("7.00")),
        ("best_fit_eager_double", "NUMERIC(20, 2)", schema.float64(), 7.0),
    ],
)
def test_numeric_mapping(postgres, start, mapping, column, kind, value):
    table = postgres.table()
    postgres.execute(f"CREATE TABLE {table} (a {column} NOT NULL)", f"INSERT INTO {table} VALUES (7)")
    (record,) = start(JdbcSource, config(postgres, table, mode="bulk", numeric_mapping=mapping)).poll()
    assert record.value_schema.fields["a"] == kind
    assert record.value["a"] == value
    assert type(record.value["a"]) is type(value)


def test_a_new_column_is_in_the_next_records(database, start):
    table = fill(database, 1)
    run = start(JdbcSource, config(database, table))
    assert numbers(run.records()) == [0]
    database.execute(f"ALTER TABLE {table} ADD COLUMN extra VARCHAR(10)")
    database.execute(f"INSERT INTO {table} (n, extra) VALUES (1, 'x')")
    (record,) = run.records()
    assert record.value["extra"] == "x"
    assert record.value_schema.fields["extra"] == schema.string(**NULL)


def test_tables_are_spread_over_tasks_and_lists_choose_them(database, start):
    tables = sorted(fill(database, 1) for _ in range(3))
    more = config(database, ",".join(tables))
    run = start(JdbcSource, more, max_tasks=2)
    assert len(run.tasks) == 2
    assert sorted(record.topic for record in run.records()) == [f"p-{table}" for table in tables]
    del more["table.whitelist"]
    chosen = {**more, "table.include.list": f".*{tables[0]},{tables[1]}", "table.exclude.list": tables[1]}
    run = start(JdbcSource, chosen)
    assert [record.topic for record in run.records()] == [f"p-{tables[0]}"]


def test_a_new_table_asks_for_a_new_plan(database, start):
    table = fill(database, 1)
    more = {**config(database, table), "table.include.list": f"{table}.*", "table.poll.interval.ms": "10"}
    del more["table.whitelist"]
    run = start(JdbcSource, more)
    replanned = threading.Event()
    run.connector.context.request_task_reconfiguration = replanned.set
    database.execute(f"CREATE TABLE {table}_new (id {database.serial})")
    assert replanned.wait(30)
    assert "_new" in run.connector.task_configs(1)[0]["tables"]


@pytest.mark.parametrize("key", ["incrementing.column.name", "timestamp.column.name"])
def test_a_column_that_may_be_null_is_refused(database, start, key):
    table = database.table()
    database.execute(f"CREATE TABLE {table} (x INT, y TIMESTAMP NULL)")
    mode = {"mode": key.split(".")[0], key: "x" if key.startswith("i") else "y"}
    run = start(JdbcSource, {**config(database, table), **mode})
    with pytest.raises(ConnectError, match=r"may be null.*validate\.non\.null=false"):
        run.poll()
    run = start(JdbcSource, {**config(database, table), **mode, "validate.non.null": "false"})
    assert run.poll() == []


def test_names_are_quoted(database, start):
    quote = "`" if database.kind == "mariadb" else '"'
    name = f"{quote}Select me{quote}"
    database.execute(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (id {database.serial}, {quote}Group{quote} INT)",
        f"INSERT INTO {name} ({quote}Group{quote}) VALUES (1)",
    )
    run = start(JdbcSource, config(database, "Select me"))
    assert [record.value for record in run.records()] == [{"id": 1, "Group": 1}]


def test_a_database_that_is_away_is_tried_again(start, tmp_path):
    more = {**INCREMENTING, "topic.prefix": "p-", "query": "SELECT 1 AS id"}
    run = start(JdbcSource, {**more, "connection.url": "jdbc:postgresql://127.0.0.1:1/x"})
    with pytest.raises(RetriableError, match="does not answer"):
        run.poll()


def test_a_connection_that_breaks_is_opened_again(server_database, start):
    table = fill(server_database)
    run = start(JdbcSource, config(server_database, table, batch_max_rows="2"))
    assert numbers(run.poll()) == [0, 1]
    with server_database.server.admin.connect() as admin:
        if server_database.kind == "postgresql":
            admin.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                "'millstream-connect-reader'"
            )
        else:
            processes = admin.exec_driver_sql(
                "SELECT id FROM information_schema.processlist WHERE user = 'millstream'"
            )
            for (process,) in processes.all():
                admin.exec_driver_sql(f"KILL {process}")
    failures, read = 0, []
    while len(read) < 3:
        try:
            read += numbers(run.poll())
        except RetriableError:
            failures += 1
            assert failures < 5
    assert read == [2, 3, 4]


def test_stop_interrupts_a_query(server_database, start):
    sleep = "pg_sleep(600)" if server_database.kind == "postgresql" else "sleep(600)"
    more = config(server_database, "x", mode="bulk", query=f"SELECT 1 AS a, {sleep} AS b")
    del more["table.whitelist"]
    run = start(JdbcSource, more)
    task = run.tasks[0]
    result = []
    thread = threading.Thread(target=lambda: result.append(task.poll()))
    thread.start()
    while task._rows is None:
        pass
    task.stop()
    thread.join(60)
    assert result == [None]


def test_urls():
    assert str(parse_url("jdbc:postgresql://h:1/d?currentSchema=s")) == (
        "postgresql+psycopg://h:1/d?options=-csearch_path%3Ds"
    )
    assert str(parse_url("jdbc:mysql://h/d?useSSL=false")) == "mariadb+pymysql://h/d"
    assert parse_url("jdbc:sqlite:/a/b.db").database == "/a/b.db"
    assert str(parse_url("mariadb+pymysql://h/d")) == "mariadb+pymysql://h/d"
    for bad in ("jdbc:oracle:thin:@h", "postgres", "jdbc:db2://h/d"):
        with pytest.raises(ConfigError, match=r"connection\.url"):
            parse_url(bad)


def test_all_wrong_settings_are_reported():
    _, errors = JdbcSource.CONFIG.examine({"mode": "fast", "batch.max.rows": "0", "db.timezone": "Mars"})
    assert {error.key for error in errors} == {
        "connection.url", "mode", "topic.prefix", "batch.max.rows", "db.timezone",
    }  # fmt: skip
    raw = {"connection.url": "jdbc:sqlite:x", "mode": "timestamp", "topic.prefix": "p"}
    with pytest.raises(ConfigError, match=r"timestamp\.column\.name"):
        JdbcSource.CONFIG.parse(raw)


def test_passwords_are_not_shown(postgres):
    shown = repr(JdbcSource.CONFIG.parse({**postgres.config, "mode": "bulk", "topic.prefix": "p"}))
    assert "pa:ss" not in shown


def test_positions_keep_microseconds():
    position = Position(dt.datetime(2024, 1, 1, 0, 0, 1, 234567, dt.UTC), 5)
    assert position.offset() == {"incrementing": 5, "timestamp": 1704067201234, "timestamp_nanos": 234567000}
    assert Position.of_offset(position.offset()) == position
    assert MemoryOffsetStore().offsets == {}
