"""JdbcSink: writes topics into tables. `JdbcSinkConfig` declares and documents its settings.

Each `put` is one transaction over all its tables. Where the database refuses a batch, the task writes its
rows one by one. A bad record is reported if the connector has an errant record reporter. Otherwise the `put`
is rolled back, and the task fails with the record's topic, partition and offset.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from connect.api import (
    ConnectError,
    DataError,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
    ends_of,
    is_unwritten,
)
from plugins.jdbc.database import open_engine
from plugins.jdbc.errors import connect_error, is_row_error
from plugins.jdbc.layout import Layout, Layouts
from plugins.jdbc.offset_table import OffsetTable
from plugins.jdbc.sink_config import JdbcSinkConfig
from plugins.jdbc.statements import Statement
from plugins.jdbc.target import Targets

_CLAIMS_MAX = 5
_REPORT_SECONDS = 60.0
_REFUSALS = (sa.exc.SQLAlchemyError, TypeError, ValueError, OverflowError)
"""Errors of the database, and of a driver that cannot write a value: OverflowError is SQLite's."""
Rows = list[tuple[SinkRecord, tuple[Any, ...]]]


class JdbcSinkTask(SinkTask):
    """A task that writes its partitions' records into their tables."""

    def __init__(self) -> None:
        self._connection: sa.Connection | None = None
        self._offsets: OffsetTable | None = None
        self._failures = 0
        self._reports: list[Any] = []
        """Reports of the present `put`: futures that are done once the dead letter is written."""
        self._stopping = threading.Event()

    def start(self, config: Mapping[str, str]) -> None:
        """Connect; with delivery=exactly_once, create the table of offsets."""
        self._config = JdbcSinkConfig.parse(config)
        self._engine = open_engine(self._config)
        self._layouts = Layouts(self._config)
        self._targets = Targets(self._engine, self._config)
        self._statements: dict[int, tuple[Layout, Statement]] = {}
        if self._config.delivery == "exactly_once":
            try:
                self._offsets = OffsetTable(self._engine, self.context.connector)
            except sa.exc.SQLAlchemyError as e:
                raise connect_error(e, "the table of offsets") from e

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Claim the partitions, and go on from the offsets that the database holds."""
        if self._offsets is None:
            return
        for attempt in range(_CLAIMS_MAX):
            try:
                with self._engine.begin() as connection:
                    stored = self._offsets.claim(connection, partitions)
            except sa.exc.IntegrityError as e:  # another task claims at the same moment
                if attempt == _CLAIMS_MAX - 1:
                    raise connect_error(e, "the claim of partitions") from e
            except sa.exc.SQLAlchemyError as e:
                raise connect_error(e, "the claim of partitions") from e
            else:
                self.context.offset(stored)
                return

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the records in one transaction. Raises RetriableError while the database does not answer."""
        if not records:
            return
        try:
            self._write(records)
        except sa.exc.SQLAlchemyError as e:
            self._disconnect()
            error = connect_error(e, "the batch")
            if isinstance(error, RetriableError):
                raise self._again(error) from e
            raise error from e
        except BaseException:
            self._disconnect()
            raise
        self._failures = 0

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets: everything put is committed in the database."""
        return offsets

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Release the claims."""
        if self._offsets is not None:
            self._offsets.release(partitions)

    def stop(self) -> None:
        """Close the connection."""
        self._stopping.set()
        self._disconnect()

    def _again(self, error: RetriableError) -> ConnectError:
        """Count a failure, and wait. Return the error to raise: after `max.retries` it is a final one."""
        self._failures += 1
        if self._failures > self._config.max_retries:
            return ConnectError(
                f"{error}; tried {self._failures} times, max.retries={self._config.max_retries}"
            )
        self._stopping.wait(self._config.retry_backoff_ms / 1000)
        return error

    def _write(self, records: Sequence[SinkRecord]) -> None:
        self._reports.clear()
        groups = list(self._groups(records))
        for layout, _ in groups:  # before the transaction, as MariaDB ends it with each change of a table
            self._statement(layout)
        if self._connection is None:
            self._connection = self._engine.connect()
        connection = self._connection
        with connection.begin():
            stored: dict[TopicPartition, int] = {}
            ends: dict[TopicPartition, int] = {}
            if self._offsets is not None:
                ends = ends_of(records)
                stored = self._offsets.check(connection, ends)
            for layout, rows in groups:
                if stored:
                    is_new = is_unwritten(stored)
                    rows = [row for row in rows if is_new(row[0])]
                if rows:
                    self._write_rows(connection, self._statement(layout), rows)
            if self._offsets is not None:
                for report in self._reports:  # a dead letter must not be lost behind a stored offset
                    report.result(_REPORT_SECONDS)
                ahead = {tp: end for tp, end in ends.items() if end > stored.get(tp, -1)}
                self._offsets.store(connection, ahead)

    def _groups(self, records: Sequence[SinkRecord]) -> Iterator[tuple[Layout, Rows]]:
        """Yield rows that follow each other with one layout, at most `batch.size` at a time."""
        layout: Layout | None = None
        rows: Rows = []
        for record in records:
            try:
                own = self._layouts.of(record)
                row = own.values(record)
            except (DataError, AttributeError) as e:
                self._refuse(record, DataError(f"{_place(record)}: {e}"))
                continue
            if own is not layout or len(rows) >= self._config.batch_size:
                if layout is not None and rows:
                    yield layout, rows
                layout, rows = own, []
            rows.append((record, row))
        if layout is not None and rows:
            yield layout, rows

    def _statement(self, layout: Layout) -> Statement:
        cached = self._statements.get(id(layout))
        if cached is None or cached[0] is not layout:
            target = self._targets.ready(layout)
            if len(self._statements) > 1000:
                self._statements.clear()
            statement = Statement(self._engine.dialect, layout, target, self._config)
            cached = self._statements[id(layout)] = (layout, statement)
        return cached[1]

    def _write_rows(self, connection: sa.Connection, statement: Statement, rows: Rows) -> None:
        batch = connection.begin_nested()
        try:
            statement.execute(connection, [row for _, row in rows])
        except _REFUSALS as e:
            if isinstance(e, sa.exc.SQLAlchemyError) and not is_row_error(e):
                raise
            batch.rollback()
            self._write_one_by_one(connection, statement, rows)
        else:
            batch.commit()

    def _write_one_by_one(self, connection: sa.Connection, statement: Statement, rows: Rows) -> None:
        for record, row in rows:
            single = connection.begin_nested()
            try:
                statement.execute(connection, [row])
            except _REFUSALS as e:
                if isinstance(e, sa.exc.SQLAlchemyError) and not is_row_error(e):
                    raise
                single.rollback()
                cause = str(getattr(e, "orig", None) or e).strip()
                self._refuse(record, DataError(f"{_place(record)}: the database refuses the row: {cause}"))
            else:
                single.commit()

    def _refuse(self, record: SinkRecord, error: DataError) -> None:
        """Report a bad record. Raises the error if nobody takes reports."""
        reporter = self.context.errant_record_reporter()
        if reporter is None:
            raise error
        self._reports.append(reporter.report(record, error))

    def _disconnect(self) -> None:
        """Drop the connection, and what is known of the tables: they may have changed."""
        self._targets.forget()
        self._statements.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it may be broken
                connection.invalidate()
            with suppress(Exception):
                connection.close()


def _origin(record: SinkRecord) -> tuple[TopicPartition, int]:
    """Return the place that the record was read from, whatever transforms made of it (KIP-793)."""
    return TopicPartition(record.original_topic, record.original_partition), record.original_offset


def _place(record: SinkRecord) -> str:
    tp, offset = _origin(record)
    return f"{tp.topic}-{tp.partition} at offset {offset}"


class JdbcSink(SinkConnector):
    """The connector of the database sink; each task writes its assigned partitions."""

    CONFIG = JdbcSinkConfig
    VERSION = "1"
    task_class = JdbcSinkTask

    def check_target(self, config: Mapping[str, str]) -> None:
        """Log in to the database."""
        engine = open_engine(JdbcSinkConfig.parse(config))
        try:
            with engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
        except sa.exc.SQLAlchemyError as e:
            raise connect_error(e, "the database") from e
        finally:
            engine.dispose()
