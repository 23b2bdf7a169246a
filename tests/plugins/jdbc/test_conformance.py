"""Source and sink pass the tests of every connector on each database, exactly once where they claim it."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.testing.conformance import SinkConformance, SourceConformance
from plugins.jdbc import JdbcSink, JdbcSource
from tests.plugins.jdbc.conftest import Database, PatientRun


class TestIncrementing(SourceConformance):
    connector = JdbcSource
    run_class = PatientRun
    poll_max = 3
    mode = "incrementing"

    @pytest.fixture
    def folder(self, database: Database, tmp_path: Path) -> Path:
        self.database, self.table = database, database.table()
        time = "TIMESTAMP" if database.kind == "sqlite" else "TIMESTAMP(6)"
        columns = f"id {database.serial}, number INTEGER, at {time} NOT NULL"
        database.execute(f"CREATE TABLE {self.table} ({columns})")
        return tmp_path

    def config(self, folder: Path) -> dict[str, str]:
        return {
            **self.database.config,
            "mode": self.mode,
            "incrementing.column.name": "id",
            "timestamp.column.name": "at",
            "topic.prefix": "db-",
            "table.whitelist": self.table,
            "poll.interval.ms": "1",
            "batch.max.rows": "3",
        }

    def add(self, folder: Path, numbers: range) -> None:
        # Two rows have each time: a place between them has to be told by their ids.
        rows = (f"({number}, '2026-01-01 00:00:{number // 2:02}.000000')" for number in numbers)
        self.database.execute(f"INSERT INTO {self.table} (number, at) VALUES {', '.join(rows)}")


class TestTimestampAndIncrementing(TestIncrementing):
    mode = "timestamp+incrementing"

    @pytest.fixture(params=["sqlite", "postgres"])
    def database(self, request: pytest.FixtureRequest) -> Database:
        """Return all but MariaDB, where each look at open transactions takes 0.1 s; test_source.py has it."""
        database: Database = request.getfixturevalue(request.param)
        return database


class TestUpsert(SinkConformance):
    connector = JdbcSink
    exactly_once = True
    settings = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "number"}

    @pytest.fixture
    def folder(self, database: Database, tmp_path: Path) -> Path:
        self.database, self.table = database, database.table()
        # All tests run a connector of the same name, whose offsets the last test has left there.
        database.execute("DROP TABLE IF EXISTS millstream_offsets")
        return tmp_path

    def config(self, folder: Path) -> dict[str, str]:
        return {
            **self.database.config,
            **self.settings,
            "table.name.format": self.table,
            "auto.create": "true",
            "auto.evolve": "true",
        }

    def read(self, folder: Path) -> list[int]:
        return [number for (number,) in self.database.rows(f"SELECT number FROM {self.table}")]


class TestOffsetsWithTheRows(TestUpsert):
    settings = {"delivery": "exactly_once"}
