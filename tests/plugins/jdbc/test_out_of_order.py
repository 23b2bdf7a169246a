"""No row is lost that commits out of order: transactions interleave while the source polls."""

import random

import pytest
import sqlalchemy as sa

from plugins.jdbc.source import JdbcSource

MODES = {
    "incrementing": {"mode": "incrementing", "incrementing.column.name": "id"},
    "timestamp": {"mode": "timestamp", "timestamp.column.name": "at"},
    "timestamp+incrementing": {
        "mode": "timestamp+incrementing", "timestamp.column.name": "at", "incrementing.column.name": "id",
    },
}  # fmt: skip


def config(database, table, mode, **more):
    return {
        **database.config, **MODES[mode], "table.whitelist": table,
        "topic.prefix": "p-", "poll.interval.ms": "0", **more,
    }  # fmt: skip


def create(database, table):
    database.execute(f"CREATE TABLE {table} (id {database.serial}, n INT NOT NULL, at {database.now})")


def drain(run, count):
    """Poll until `count` different rows have come; marks of time need a moment to become old enough."""
    rows = []
    for _ in range(100_000):
        rows += run.poll()
        if len({record.value["n"] for record in rows}) >= count:
            return rows
    raise AssertionError(f"only {len(rows)} of {count} rows")


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_commits_late_is_waited_for(server_database, start, mode):
    table = server_database.table()
    create(server_database, table)
    run = start(JdbcSource, config(server_database, table, mode))
    with server_database.engine.connect() as slow:
        slow.exec_driver_sql(f"INSERT INTO {table} (n) VALUES (1)")
        server_database.execute(f"INSERT INTO {table} (n) VALUES (2)")
        early = [record for _ in range(5) for record in run.poll()]
        slow.commit()
    late = drain(run, 2) if not early else early + drain(run, 1)
    assert early == []
    assert [record.value["n"] for record in late] == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_a_transaction_that_began_after_the_row_does_not_hold_it(server_database, start, mode):
    table = server_database.table()
    create(server_database, table)
    server_database.execute(f"INSERT INTO {table} (n) VALUES (1)")
    run = start(JdbcSource, config(server_database, table, mode))
    drain(run, 1)
    server_database.execute(f"INSERT INTO {table} (n) VALUES (2)")
    connections = [server_database.engine.connect() for _ in range(2)]
    read = []
    for n in range(1000):  # there is always an open transaction, which began after the row
        connections[n % 2].commit()
        connections[n % 2].exec_driver_sql(f"INSERT INTO {table} (n) VALUES ({10 + n})")
        read += [record.value["n"] for record in run.poll()]
        if 2 in read:
            break
    for connection in connections:
        connection.close()
    assert read[0] == 2


class Writer:
    """A connection that inserts, updates, commits and rolls back at random."""

    def __init__(self, database, table, random_, numbers):
        self.connection = database.engine.connect()
        self.kind, self.table, self.random, self.numbers = database.kind, table, random_, numbers
        self.pending, self.committed, self.savepoint = [], [], None

    def step(self):
        match self.random.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                self.insert()
            case 5:
                self.connection.exec_driver_sql("SELECT 1")  # a transaction may begin long before it writes
            case 6 | 7:
                self.commit()
            case 8:
                self.connection.rollback()
                self.pending.clear()
            case 9:
                self.with_savepoint()

    def insert(self):
        for _ in range(self.random.randint(1, 3)):
            n = next(self.numbers)
            self.connection.exec_driver_sql(f"INSERT INTO {self.table} (n) VALUES ({n})")
            self.pending.append(n)

    def with_savepoint(self):
        nested = self.connection.begin_nested()
        before = len(self.pending)
        self.insert()
        if self.random.random() < 0.5:
            nested.rollback()
            del self.pending[before:]
        else:
            nested.commit()

    def commit(self):
        self.connection.commit()
        self.committed += self.pending
        self.pending.clear()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_random_interleavings_lose_no_row(server_database, start, mode, seed):
    random_ = random.Random(seed)
    table = server_database.table()
    create(server_database, table)
    numbers = iter(range(10_000))
    writers = [Writer(server_database, table, random_, numbers) for _ in range(4)]
    run = start(JdbcSource, config(server_database, table, mode, **{"batch.max.rows": "3"}))
    read = []
    for _ in range(36):
        random_.choice(writers).step()
        if random_.random() < 0.5:
            read += run.poll()
        if random_.random() < 0.05:  # a crash: what was not committed is read again
            if random_.random() < 0.5:
                run.commit()
            run = start(
                JdbcSource, config(server_database, table, mode, **{"batch.max.rows": "3"}), store=run.store
            )
    for writer in writers:
        writer.commit()
        writer.connection.close()
    committed = {n for writer in writers for n in writer.committed}
    for _ in range(100_000):
        read += run.poll()
        if committed <= {record.value["n"] for record in read}:
            break
    assert {record.value["n"] for record in read} == committed
    assert {n for (n,) in server_database.rows(f"SELECT n FROM {table}")} == committed


def test_a_prepared_transaction_is_waited_for(postgres, start):
    table = postgres.table()
    create(postgres, table)
    run = start(JdbcSource, config(postgres, table, "incrementing"))
    with postgres.engine.connect() as connection:
        connection.exec_driver_sql(f"INSERT INTO {table} (n) VALUES (1)")
        postgres.execute(f"INSERT INTO {table} (n) VALUES (2)")
        assert run.records() == []
        connection.exec_driver_sql(f"PREPARE TRANSACTION '{table}'")
    assert run.records() == []
    with postgres.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"COMMIT PREPARED '{table}'")
    assert [record.value["n"] for record in drain(run, 2)] == [1, 2]


def test_an_id_taken_from_the_sequence_before_the_insert_is_waited_for(postgres, start):
    table = postgres.table()
    create(postgres, table)
    run = start(JdbcSource, config(postgres, table, "incrementing"))
    with postgres.engine.connect() as connection:
        number = connection.scalar(sa.text(f"SELECT nextval('{table}_id_seq')"))
        postgres.execute(f"INSERT INTO {table} (n) VALUES (2)")
        assert run.records() == []
        connection.exec_driver_sql(f"INSERT INTO {table} (id, n) VALUES ({number}, 1)")
        connection.commit()
    assert [record.value["n"] for record in drain(run, 2)] == [1, 2]


def test_writers_of_a_partition_of_the_table_are_waited_for(postgres, start):
    table = postgres.table()
    postgres.execute(
        f"CREATE TABLE {table} (id BIGSERIAL NOT NULL, n INT NOT NULL) PARTITION BY RANGE (id)",
        f"CREATE TABLE {table}_low PARTITION OF {table} FOR VALUES FROM (1) TO (1000)",
    )
    run = start(JdbcSource, config(postgres, table, "incrementing"))
    with postgres.engine.connect() as connection:
        connection.exec_driver_sql(f"INSERT INTO {table}_low (id, n) VALUES (nextval('{table}_id_seq'), 1)")
        postgres.execute(f"INSERT INTO {table} (n) VALUES (2)")
        assert run.records() == []
        connection.commit()
    assert [record.value["n"] for record in drain(run, 2)] == [1, 2]


def test_a_writer_of_another_table_holds_nothing_back(postgres, start):
    table, other = postgres.table(), postgres.table()
    create(postgres, table)
    create(postgres, other)
    run = start(JdbcSource, config(postgres, table, "incrementing"))
    with postgres.engine.connect() as connection:
        connection.exec_driver_sql(f"INSERT INTO {other} (n) VALUES (1)")
        postgres.execute(f"INSERT INTO {table} (n) VALUES (2)")
        assert [record.value["n"] for record in run.records()] == [2]


def test_writers_are_waited_for_behind_a_view_and_a_query(postgres, start):
    table = postgres.table()
    create(postgres, table)
    postgres.execute(f"CREATE VIEW {table}_view AS SELECT * FROM {table}")
    of_view = start(JdbcSource, {**config(postgres, f"{table}_view", "incrementing"), "table.types": "VIEW"})
    of_query = {**config(postgres, table, "incrementing"), "query": f"SELECT * FROM {table} WHERE n > 0"}
    del of_query["table.whitelist"]
    of_query = start(JdbcSource, of_query)
    with postgres.engine.connect() as connection:
        connection.exec_driver_sql(f"INSERT INTO {table} (n) VALUES (1)")
        postgres.execute(f"INSERT INTO {table} (n) VALUES (2)")
        assert of_view.records() == of_query.records() == []
        connection.commit()
    for run in (of_view, of_query):
        assert [record.value["n"] for record in drain(run, 2)] == [1, 2]


def test_an_update_that_commits_late_is_read(server_database, start):
    table = server_database.table()
    create(server_database, table)
    now = "now()" if server_database.kind == "postgresql" else "now(6)"
    server_database.execute(f"INSERT INTO {table} (n) VALUES (1), (2)")
    run = start(JdbcSource, config(server_database, table, "timestamp"))
    drain(run, 2)
    with server_database.engine.connect() as slow:
        slow.exec_driver_sql(f"UPDATE {table} SET n = 10, at = {now} WHERE id = 1")
        server_database.execute(f"UPDATE {table} SET n = 20, at = {now} WHERE id = 2")
        for _ in range(5):
            assert run.poll() == []
        slow.commit()
    assert {record.value["n"] for record in drain(run, 2)} == {10, 20}


def test_sqlite_waits_for_its_writer(sqlite, start):
    with sqlite.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    sqlite.execute(f"CREATE TABLE t (id {sqlite.serial}, n INT NOT NULL, at {sqlite.now})")
    run = start(JdbcSource, config(sqlite, "t", "timestamp"))
    sqlite.execute("INSERT INTO t (n, at) VALUES (1, '2024-01-01 00:00:00')")
    with sqlite.engine.connect() as slow:
        slow.exec_driver_sql("INSERT INTO t (n, at) VALUES (2, '2024-01-01 00:00:00')")
        for _ in range(5):
            assert run.poll() == []
        slow.commit()
    assert {record.value["n"] for record in drain(run, 2)} == {1, 2}
