"""Connections: the settings that source and sink share, JDBC URLs, and an engine made from both.

jdbc:postgresql://host:5432/shop?currentSchema=sales    postgresql+psycopg://host:5432/shop
jdbc:mariadb://host:3306/shop, jdbc:mysql://...         mariadb+pymysql://host:3306/shop
jdbc:sqlite:/var/lib/shop.db                            sqlite:////var/lib/shop.db
"""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.sql import quoted_name

from connect.api import Config, ConfigError, Password, setting

APPLICATION_NAME = "millstream-connect-reader"
"""The name of the source's read-only sessions in PostgreSQL, so that they do not wait for each other."""
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mariadb+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlite": "sqlite+pysqlite",
}
_CONNECT_SECONDS = 10
_log = logging.getLogger(__name__)


def _time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError("must be a time zone's name, such as UTC or Europe/Berlin") from None


class DatabaseConfig(Config):
    """Settings of a connection to a database."""

    connection_url: str = setting(
        "The database: a JDBC URL as jdbc:postgresql://host/db, or an SQLAlchemy URL.",
        importance="HIGH",
        group="Database",
    )
    connection_user: str | None = setting("The user's name.", default=None, group="Database")
    connection_password: Password | None = setting("The user's password.", default=None, group="Database")
    db_timezone: str = setting(
        "The time zone of date and time values in columns without a time zone.",
        default="UTC",
        group="Database",
        check=_time_zone,
    )
    quote_sql_identifiers: Literal["always", "never"] = setting(
        "`always`: quote the names of tables and columns in SQL; `never`: do not.",
        default="always",
        importance="LOW",
        group="Database",
    )

    @property
    def url(self) -> URL:
        """The SQLAlchemy URL. Raises ConfigError if the connection's URL cannot be used."""
        url = parse_url(self.connection_url)
        if self.connection_user:
            url = url.set(username=self.connection_user)
        if self.connection_password is not None:
            url = url.set(password=self.connection_password.secret)
        return url

    def name(self, text: str) -> quoted_name:
        """Return the name of a table or column as SQL has to show it."""
        return quoted_name(text, self.quote_sql_identifiers == "always")

    @property
    def zone(self) -> ZoneInfo:
        """The zone of values without a time zone."""
        return ZoneInfo(self.db_timezone)

    def check(self) -> None:
        """Raise ConfigError if the URL cannot be used."""
        _ = self.url


def parse_url(text: str) -> URL:
    """Return the SQLAlchemy URL of a JDBC or SQLAlchemy URL. Raises ConfigError, without the password."""
    bare = text.removeprefix("jdbc:")
    if bare.startswith("sqlite:") and not bare.startswith("sqlite://"):
        return URL.create(_DRIVERS["sqlite"], database=bare.removeprefix("sqlite:") or None)
    try:
        url = make_url(bare)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError(
            "connection.url", "[hidden]", "must be a URL such as jdbc:postgresql://host:5432/database"
        ) from None
    if url.drivername in _DRIVERS:
        url = url.set(drivername=_DRIVERS[url.drivername])
    if url.get_backend_name() not in ("postgresql", "mysql", "mariadb", "sqlite"):
        raise ConfigError("connection.url", url.drivername, "must be of postgresql, mariadb, mysql or sqlite")
    return _with_query(url) if text.startswith("jdbc:") else url


_KEPT_PARAMETERS = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
}


def _with_query(url: URL) -> URL:
    """Return the URL with the parameters of a JDBC driver in the words of Python's driver."""
    query: dict[str, str] = {}
    for name, value in url.query.items():
        text = value if isinstance(value, str) else value[-1]
        if name == "user":
            url = url.set(username=text)
        elif name == "password":
            url = url.set(password=text)
        elif name == "currentSchema" and url.get_backend_name() == "postgresql":
            query["options"] = f"-csearch_path={text}"
        elif name in _KEPT_PARAMETERS and url.get_backend_name() == "postgresql":
            query[_KEPT_PARAMETERS[name]] = text
        else:
            _log.warning("connection.url: the parameter %s has no effect here", name)
    return url.set(query=query)


def open_engine(config: DatabaseConfig, *, read_only: bool = False) -> sa.Engine:
    """Return an engine without a pool: each task opens few connections and keeps them.

    Sessions of PostgreSQL and MariaDB use UTC, so that a value with a time zone is the same everywhere.
    """
    url, arguments = config.url, dict[str, Any]()
    backend = url.get_backend_name()
    if backend == "postgresql":
        options = url.query.get("options", "")
        flags = " -cdefault_transaction_read_only=on" if read_only else ""
        arguments = {
            "connect_timeout": _CONNECT_SECONDS,
            "options": f"{options} -ctimezone=UTC{flags}".strip(),
            "application_name": APPLICATION_NAME if read_only else "millstream-connect",
        }
    elif backend in ("mysql", "mariadb"):
        arguments = {"connect_timeout": _CONNECT_SECONDS, "init_command": "SET time_zone = '+00:00'"}
    elif backend == "sqlite":
        arguments = {"check_same_thread": False, "timeout": _CONNECT_SECONDS}
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=arguments)
    if backend == "postgresql" and read_only:
        from plugins.jdbc.postgres_dates import read_any_date  # psycopg, only where it is needed

        sa.event.listen(engine, "connect", read_any_date)
    if backend == "sqlite":
        sa.event.listen(engine, "connect", _plain_sqlite)
        # A writer takes its lock first: one that has read before could not wait for it.
        begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        sa.event.listen(engine, "begin", lambda connection: _begin(connection, begin))
    return engine


def _plain_sqlite(connection: Any, _record: object) -> None:
    """Leave transactions to SQLAlchemy: Python's module begins none before SELECT or DDL."""
    connection.isolation_level = None


def _begin(connection: sa.Connection, statement: str) -> None:
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(statement)


def interrupt(connection: Any, backend: str) -> None:
    """End a statement that another thread waits for; `connection` is the driver's. The session is lost."""
    with suppress(Exception):  # the statement has ended meanwhile
        if backend == "sqlite":
            connection.interrupt()
        elif backend == "postgresql":
            connection.cancel()
        else:
            connection._sock.shutdown(socket.SHUT_RDWR)
