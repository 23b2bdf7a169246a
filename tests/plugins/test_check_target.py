"""`check_target` of our connectors, before a start: `millstream connect dry-run` shows its errors."""

import sqlite3

import pytest

from connect.api import ConnectError
from plugins.files import FilesSink, FilesSource

jdbc = pytest.importorskip("plugins.jdbc", reason="the database plugin needs SQLAlchemy")


def test_a_folder_that_can_be_made(tmp_path):
    FilesSink().check_target({"path": str(tmp_path / "a" / "b")})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ConnectError, match=r"/a/b cannot be made: .*/a is no folder"):
        FilesSink().check_target({"path": str(tmp_path / "a" / "b")})


def test_files_to_read(tmp_path):
    config = {"files": f"{tmp_path}/*.csv", "topic": "t"}
    with pytest.raises(ConnectError, match=r"\*\.csv: there is no such file yet"):
        FilesSource().check_target(config)
    (tmp_path / "a.csv").touch()
    FilesSource().check_target(config)


def test_a_database(tmp_path):
    source = {
        "connection.url": f"jdbc:sqlite:{tmp_path}/db",
        "mode": "bulk",
        "topic.prefix": "t-",
    }
    sqlite3.connect(tmp_path / "db").close()
    with pytest.raises(ConnectError, match="no table that these settings select"):
        jdbc.JdbcSource().check_target(source)
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER)")
    connection.close()
    jdbc.JdbcSource().check_target(source)
    jdbc.JdbcSink().check_target({"connection.url": f"jdbc:sqlite:{tmp_path}/db"})
    with pytest.raises(ConnectError):
        jdbc.JdbcSink().check_target({"connection.url": "jdbc:postgresql://127.0.0.1:1/db"})
