"""Databases through SQLAlchemy: a source and a sink of tables in PostgreSQL, MariaDB and SQLite."""

from plugins.jdbc.sink import JdbcSink
from plugins.jdbc.source import JdbcSource

__all__ = ["JdbcSink", "JdbcSource"]
