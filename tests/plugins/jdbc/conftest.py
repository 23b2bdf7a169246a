"""Databases for the tests: SQLite always, PostgreSQL and MariaDB where they are installed."""

import itertools
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from connect.testing import SinkRun, SourceRun
from plugins.jdbc.database import DatabaseConfig, open_engine
from tests.support import databases

_numbers = itertools.count()


class Database:
    """A database with a name, its connector config, and an engine of the connector's user."""

    def __init__(self, kind: str, config: dict[str, str], server: databases.Server | None = None) -> None:
        self.kind, self.config, self.server = kind, config, server
        self.engine = open_engine(DatabaseConfig.parse(config))

    def table(self) -> str:
        """Return a name that no other test uses."""
        return f"t{next(_numbers)}"

    def execute(self, *statements: str) -> None:
        """Run statements in a transaction."""
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def rows(self, query: str) -> list[tuple]:
        """Return a query's rows."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]

    @property
    def serial(self) -> str:
        """The definition of an incrementing key."""
        return {
            "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
            "postgresql": "BIGSERIAL PRIMARY KEY",
            "mariadb": "BIGINT AUTO_INCREMENT PRIMARY KEY",
        }[self.kind]

    @property
    def now(self) -> str:
        """The definition of a column of the time of the insert."""
        return {
            "sqlite": "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
            "postgresql": "TIMESTAMPTZ NOT NULL DEFAULT now()",
            "mariadb": "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        }[self.kind]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[databases.Server | None]:
    """Run a PostgreSQL of these tests' own."""
    with databases.postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[databases.Server | None]:
    """Run a MariaDB of these tests' own."""
    with databases.mariadb() as server:
        yield server


@pytest.fixture
def postgres(postgres_server) -> Database:
    """A PostgreSQL database."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return Database("postgresql", postgres_server.config, postgres_server)


@pytest.fixture
def mariadb(mariadb_server) -> Database:
    """A MariaDB database."""
    if mariadb_server is None:
        pytest.skip("MariaDB is not installed")
    return Database("mariadb", mariadb_server.config, mariadb_server)


@pytest.fixture
def sqlite(tmp_path) -> Database:
    """A database file of SQLite."""
    return Database("sqlite", {"connection.url": f"jdbc:sqlite:{tmp_path / 'test.db'}"})


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def database(request) -> Database:
    """Return each database in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["postgres", "mariadb"])
def server_database(request) -> Database:
    """Return each database whose transactions commit out of order."""
    return request.getfixturevalue(request.param)


class PatientRun(SourceRun):
    """A run whose `poll` asks again while the database still shows ended statements as open ones."""

    LOOKS, LOOKS_MAX, SECONDS = 3, 200, 0.05

    def poll(self, task_id: int = 0):
        """Return the next records; none after some looks, if no mark waits."""
        for look in range(self.LOOKS_MAX):
            records = super().poll(task_id)
            is_waiting = self.tasks[task_id].statistics()["waiting_marks"] or look < self.LOOKS
            if records or not is_waiting or "mariadb" not in self._config["connection.url"]:
                break
            time.sleep(self.SECONDS)
        return records


@pytest.fixture
def start():
    """Starts sources and sinks, and stops them in the end."""
    runs = []

    def begin(connector, config, kind=SourceRun, **options):
        runs.append(kind(connector, config, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.fixture
def start_sink(start):
    """Starts sinks."""
    return lambda connector, config, **options: start(connector, config, SinkRun, **options)
