"""The database source passes the tests that every source passes, its claim of exactly once included."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connect.testing.conformance import SourceConformance
from plugins.jdbc import JdbcSource


class TestIncrementing(SourceConformance):
    connector = JdbcSource
    poll_max = 3
    mode = "incrementing"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
            id = "id INTEGER PRIMARY KEY AUTOINCREMENT"
            database.execute(f"CREATE TABLE rows ({id}, number INTEGER, at TIMESTAMP NOT NULL)")
        return tmp_path

    def config(self, folder: Path) -> dict[str, str]:
        return {
            "connection.url": f"jdbc:sqlite:{folder / 'rows.db'}",
            "mode": self.mode,
            "incrementing.column.name": "id",
            "timestamp.column.name": "at",
            "topic.prefix": "db-",
            "table.whitelist": "rows",
            "poll.interval.ms": "1",
            "batch.max.rows": "3",
        }

    def add(self, folder: Path, numbers: range) -> None:
        with closing(sqlite3.connect(folder / "rows.db")) as database, database:
            # Two rows have each time: a place between them has to be told by their ids.
            rows = [(number, f"2026-01-01 00:00:{number // 2:02}.000000") for number in numbers]
            database.executemany("INSERT INTO rows (number, at) VALUES (?, ?)", rows)


class TestTimestampAndIncrementing(TestIncrementing):
    mode = "timestamp+incrementing"
