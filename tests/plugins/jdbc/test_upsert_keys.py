"""An upsert into a table without a unique key of the key's columns is refused before a row is written.

MariaDB inserted such rows once more with each delivery: its ON DUPLICATE KEY names no columns.
"""

import pytest

from connect.api import ConnectError
from plugins.jdbc.sink import JdbcSink
from tests.plugins.jdbc.test_sink import config, people

VALUE_KEY = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
NONE = {
    "no key": [],
    "a key of other columns": ["CREATE UNIQUE INDEX {0}i ON {0} (id, name)"],
    "an index that is not unique": ["CREATE INDEX {0}i ON {0} (id)"],
}
ENOUGH = {
    "a unique index": ["CREATE UNIQUE INDEX {0}i ON {0} (id)"],
    "one of two": ["CREATE UNIQUE INDEX {0}n ON {0} (name)", "CREATE UNIQUE INDEX {0}i ON {0} (id)"],
}


def made(database, statements):
    table = database.table()
    kind = "VARCHAR(20)" if database.kind == "mariadb" else "TEXT"
    database.execute(f"CREATE TABLE {table} (id INTEGER NOT NULL, name {kind})")
    database.execute(*(statement.format(table) for statement in statements))
    return table


@pytest.mark.parametrize("statements", NONE.values(), ids=NONE)
def test_a_table_without_the_key_is_refused(database, start_sink, statements):
    table = made(database, statements)
    sink = start_sink(JdbcSink, config(database, table, **VALUE_KEY))
    with pytest.raises(ConnectError, match=f"{table} has no primary key or unique index of exactly id, "):
        sink.put(people("a", "b"))
    assert database.rows(f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("statements", ENOUGH.values(), ids=ENOUGH)
def test_rows_are_there_once_after_a_second_delivery(database, start_sink, statements):
    table = made(database, statements)
    sink = start_sink(JdbcSink, config(database, table, **VALUE_KEY))
    for _ in range(2):
        sink.put(people("a", "b"))
    assert database.rows(f"SELECT id, name FROM {table} ORDER BY id") == [(0, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ("sqlite", "CREATE UNIQUE INDEX {0}i ON {0} (id) WHERE id > 0"),
        ("postgres", "CREATE UNIQUE INDEX {0}i ON {0} (id) WHERE id > 0"),
        ("postgres", "CREATE UNIQUE INDEX {0}i ON {0} ((id + 1))"),
        ("mariadb", "CREATE UNIQUE INDEX {0}i ON {0} (name(2))"),
    ],
)
def test_an_index_of_parts_is_no_key(request, start_sink, kind, index):
    database = request.getfixturevalue(kind)
    table = made(database, [index])
    pk = {**VALUE_KEY, "pk_fields": "name" if "name" in index else "id"}
    with pytest.raises(ConnectError, match="has no primary key or unique index"):
        start_sink(JdbcSink, config(database, table, **pk)).put(people("a"))


def test_other_modes_need_no_key(database, start_sink):
    table = made(database, [])
    start_sink(JdbcSink, config(database, table)).put(people("a"))
    update = {**VALUE_KEY, "insert_mode": "update"}
    start_sink(JdbcSink, config(database, table, **update)).put(people("b"))
    assert database.rows(f"SELECT id, name FROM {table}") == [(0, "b")]
