"""JdbcSource: reads tables into topics. `JdbcSourceConfig` declares and documents its settings."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from connect.api import ConnectError, RetriableError, SourceBatch, SourceConnector, SourceTask
from plugins.jdbc.database import interrupt, open_engine
from plugins.jdbc.errors import connect_error
from plugins.jdbc.reader import TableReader
from plugins.jdbc.source_config import JdbcSourceConfig
from plugins.jdbc.tables import TableName, list_tables

_TABLES = "tables"
_log = logging.getLogger(__name__)


class JdbcSourceTask(SourceTask):
    """A task that polls its tables in turn, each every `poll.interval.ms`."""

    def __init__(self) -> None:
        self._readers: deque[TableReader] = deque()
        self._control: sa.Connection | None = None
        self._rows: sa.Connection | None = None
        self._is_stopping = False
        self._polling = threading.Lock()
        """Held while `poll` runs, as `stop` may be called meanwhile."""

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config; each table is read from its committed offset."""
        self._config = JdbcSourceConfig.parse(config)
        self._engine = open_engine(self._config, read_only=True)
        if self._config.query:
            names: list[TableName | None] = [None]
        else:
            names = [TableName(*pair) for pair in json.loads(config.get(_TABLES, "[]"))]
        for name in names:
            self._readers.append(TableReader(name, self._config, self._offset(name), self.context.report))

    def _offset(self, name: TableName | None) -> dict[str, Any] | None:
        """Return the committed offset, also one that Confluent's connector has stored."""
        reader = self.context.offsets
        if name is None:
            return reader.offset({"query": "query"})
        database = self._config.url.database
        names = [str(name), name.table, f"public.{name}", f"{database}.{name}", f"{database}.public.{name}"]
        partitions: list[dict[str, str]] = [{"table": str(name)}]
        partitions += [{"protocol": "1", "table": each} for each in names]
        return next(filter(None, map(reader.offset, partitions)), None)

    def statistics(self) -> dict[str, float]:
        """Return the counts of tables, and of marks that wait for open transactions."""
        readers = list(self._readers)
        return {"tables": len(readers), "waiting_marks": sum(reader.waiting for reader in readers)}

    def poll(self) -> SourceBatch | None:
        """Return the next batch of the table whose turn it is, or None if no table has new rows now."""
        with self._polling:
            for _ in range(len(self._readers)):
                reader = self._readers[0]
                if self._is_stopping:
                    return None
                if reader.is_reading or reader.due_at <= time.monotonic():
                    batch = self._poll_table(reader)
                    if batch is not None:
                        return batch
                self._readers.rotate(-1)
            return None

    def update_offsets(self) -> list[tuple[dict[str, str], dict[str, int]]]:
        """Return the positions behind batches of which no row became a record."""
        offsets = []
        for reader in self._readers:
            if reader.has_left_out and reader.position is not None:
                offsets.append((reader.partition, reader.position.offset()))
            reader.has_left_out = False
        return offsets

    def _poll_table(self, reader: TableReader) -> SourceBatch | None:
        try:
            control, rows = self._connections()
            return reader.poll(control, rows)
        except sa.exc.NoSuchTableError:
            _log.warning("%s: the table is gone", reader.name)
            return None
        except sa.exc.SQLAlchemyError as e:
            self._disconnect()
            if self._is_stopping:
                return None
            raise connect_error(e, reader.name) from e

    def _connections(self) -> tuple[sa.Connection, sa.Connection]:
        if self._control is None:
            self._control = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if self._rows is None:
            self._rows = self._engine.connect()
            if self._rows.dialect.name in ("mysql", "mariadb"):  # so that the server knows it as a reader
                self._rows = self._rows.execution_options(isolation_level="AUTOCOMMIT")
        return self._control, self._rows

    def _disconnect(self) -> None:
        rows = self._rows
        if rows is not None and rows.dialect.name in ("mysql", "mariadb"):
            # Its driver would read all rows that are left of a query before it closes.
            with suppress(Exception):
                interrupt(rows.connection.driver_connection, rows.dialect.name)
        for reader in self._readers:
            reader.reset()
        for connection in (self._control, self._rows):
            if connection is not None:
                with suppress(Exception):  # it may be broken
                    connection.invalidate()
                with suppress(Exception):
                    connection.close()
        self._control = self._rows = None

    def stop(self) -> None:
        """Interrupt the statement of a `poll` under way, and close the connections."""
        self._is_stopping = True
        while not self._polling.acquire(timeout=0.05):
            for connection in (self._control, self._rows):
                if connection is not None:
                    with suppress(Exception):  # it is closed meanwhile
                        driver = connection.connection.driver_connection
                        interrupt(driver, connection.dialect.name)
        try:
            self._disconnect()
        finally:
            self._polling.release()


class JdbcSource(SourceConnector):
    """The connector of the database source: it spreads the tables over tasks, and watches for new ones."""

    CONFIG = JdbcSourceConfig
    VERSION = "1"
    task_class = JdbcSourceTask

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None
        self._tables: list[TableName] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config."""
        self.config = dict(config)
        self._settings = JdbcSourceConfig.parse(config)
        self._engine = open_engine(self._settings, read_only=True)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the tasks' configs: each task has every n-th table; a query has one task.

        Raises RetriableError if the database does not answer.
        """
        if self._settings.query:
            return [self.config]
        self._tables = self._list()
        self._watch()
        if not self._tables:
            _log.warning(
                "no table to read; tables are looked for every %d ms", self._settings.table_poll_interval_ms
            )
            return []
        count = min(max_tasks, len(self._tables))
        return [{**self.config, _TABLES: json.dumps(self._tables[i::count])} for i in range(count)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True if rows have a place to go on from: in all modes but bulk, which reads all again."""
        return JdbcSourceConfig.parse(config).mode != "bulk"

    def check_target(self, config: Mapping[str, str]) -> None:
        """Log in to the database, and look for tables to read."""
        settings = JdbcSourceConfig.parse(config)
        engine = open_engine(settings, read_only=True)
        try:
            if not settings.query and not list_tables(engine, settings):
                raise ConnectError("the database has no table that these settings select")
            with engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
        except sa.exc.SQLAlchemyError as e:
            raise connect_error(e, "the database") from e
        finally:
            engine.dispose()

    def stop(self) -> None:
        """End the watch."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join(timeout=1)

    def _list(self) -> list[TableName]:
        try:
            return list_tables(self._engine, self._settings)
        except sa.exc.SQLAlchemyError as e:
            raise connect_error(e, "the list of tables") from e

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._look, name="jdbc-tables", daemon=True)
            self._watcher.start()

    def _look(self) -> None:
        while not self._stopping.wait(self._settings.table_poll_interval_ms / 1000):
            try:
                tables = self._list()
            except (ConnectError, RetriableError) as e:
                _log.warning("new tables are not noticed now: %s", e)
                continue
            if tables != self._tables:
                self.context.request_task_reconfiguration()
