"""The reader of one table or query: it polls for the next rows, up to the bound, and returns batches."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from connect.api import DataError, Schema, SourceBatch, SourceRecord, schema
from plugins.jdbc.bounds import Bound, Observation
from plugins.jdbc.columns import CONVERSION_ERRORS, schema_of_value, utc_conversion, zone_of
from plugins.jdbc.identifiers import name_as_value
from plugins.jdbc.mariadb import MariadbObserver
from plugins.jdbc.position import EPOCH, Position, floor
from plugins.jdbc.postgres import PostgresObserver
from plugins.jdbc.reading import Reading
from plugins.jdbc.rows import Report, RowConversion
from plugins.jdbc.selection import Selection, check_position, select_query, select_table, signature
from plugins.jdbc.source_config import JdbcSourceConfig
from plugins.jdbc.sqlite import SqliteObserver
from plugins.jdbc.tables import TableName

_MARGIN = dt.timedelta(milliseconds=100)
"""The distance of a mark of time from the clock: a server shows a statement a moment after its time."""
_CLOCKS = {
    "postgresql": "SELECT clock_timestamp()",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "mariadb": "SELECT UTC_TIMESTAMP(6)",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


class TableReader:
    """The state of one table: selection, position, bound, and the rows that are being read."""

    def __init__(
        self,
        name: TableName | None,
        config: JdbcSourceConfig,
        offset: Mapping[str, Any] | None,
        report: Report,
    ) -> None:
        """Create a reader; `name` None reads the config's query. `report` takes rows that do not convert."""
        self._table, self._config, self._report = name, config, report
        self.name = "query" if name is None else str(name)
        self.partition = {"query": "query"} if name is None else {"table": self.name}
        self._topic = config.topic_prefix + ("" if name is None else name.table)
        self.position: Position | None = None if offset is None else Position.of_offset(offset)
        """The position to commit once all rows so far are acknowledged."""
        self.has_left_out = False
        """True if all rows of the last batch were left out: no record has their offset."""
        self.due_at = 0.0
        self._bound = Bound(self.name)
        self._marked: Any = None
        self._selection: Selection | None = None
        self._observer: PostgresObserver | MariadbObserver | SqliteObserver | None = None
        self._reading: Reading | None = None

    @property
    def is_reading(self) -> bool:
        """True if a query has given out a part of its rows."""
        return self._reading is not None

    @property
    def waiting(self) -> int:
        """Marks that wait for open transactions."""
        return self._bound.waiting

    def reset(self) -> None:
        """Forget connections' state after an error: the next poll goes on from the position."""
        if self._reading is not None:
            with suppress(Exception):  # its connection may be broken
                self._reading.close()
        self._reading = self._observer = self._selection = None
        self._bound = Bound(self.name)
        self._marked = None

    def poll(self, control: sa.Connection, rows: sa.Connection) -> SourceBatch | None:
        """Return the next batch, or None.

        Each statement of `control` has a snapshot of its own; `rows` streams a query's result.
        """
        if self._reading is None:
            self.due_at = time.monotonic() + self._config.poll_interval_ms / 1000
            statement = self._next_statement(control)
            if statement is None:
                return None
            self._reading = Reading(rows, statement)
            self._holds_writers = rows.dialect.name == "sqlite"
        batch = self._reading.batch(self._config.batch_max_rows)
        following = self._reading.following
        if following is not None and self._holds_writers:
            batch, following = self._cut(batch, following)
        if following is None:
            self._reading.close()
            self._reading = None
        return self._records(batch, following) if batch else None

    def _cut(self, rows: list[Any], following: Any) -> tuple[list[Any], Any | None]:
        """Return the rows up to a position, from which the next poll starts a query of its own at once.

        An open query of SQLite keeps writers out, so it must not stay open until the next poll.
        """
        complete = self._complete(rows, following)
        if complete is None:
            return rows, following
        if self._id is None:
            rows = [row for row in rows if Position(self._time_of(row)) <= complete]
        self.due_at = 0.0
        return rows, None

    def _next_statement(self, control: sa.Connection) -> sa.Select[Any] | None:
        selection = self._select(control)
        query = selection.select()
        if self._config.mode == "bulk":
            return query
        bound = self._bound.advance(lambda: self._mark(control), lambda: self._observe(control))
        if bound is None:
            return None
        after = self._after()
        if self._time is None:
            assert self._id is not None
            if self.position is not None and self.position.id is not None and self.position.id >= bound:
                return None
            return query.where(self._id <= bound, *after).order_by(self._id)
        order = [self._time, *([] if self._id is None else [self._id])]
        return query.where(self._time < self._low(bound), *after).order_by(*order)

    def _select(self, control: sa.Connection) -> Selection:
        """Return the selection, made again if the table has changed."""
        old = self._selection
        if old is not None and (self._table is None or signature(control, old.source) == old.signature):
            return old
        made = self._selection = (
            select_query(control, self._config)
            if self._table is None
            else select_table(control, self._table, self._config)
        )
        positions = check_position(made, self._config, self.name)
        self._conversion = RowConversion(self.name, made, positions)
        self._id = positions.pop() if self._config.has_id else None
        self._id_index = None if self._id is None else made.index(self._id)
        self._time_columns = [
            (made.index(e), utc_conversion(zone_of(e.type, self._config.zone))) for e in positions
        ]
        self._time = (
            (sa.func.coalesce(*positions) if len(positions) > 1 else positions[0]) if positions else None
        )
        self._naive_zone = next(
            (zone_of(e.type, self._config.zone) for e in positions if not getattr(e.type, "timezone", False)),
            None,
        )
        self._is_text_time = control.dialect.name == "sqlite"
        self._digits = min((_digits(e.type, control.dialect.name) for e in positions), default=6)
        self._schema: Schema | None = None
        if all(each.schema is not None for each in made.columns):
            fields = {each.name: each.schema for each in made.columns if each.schema is not None}
            self._schema = schema.struct(fields, name=None if self._table is None else self._table.table)
        return made

    def _mark(self, control: sa.Connection) -> Any:
        """Return a mark for the bound: the clock, or the greatest id if it is new."""
        assert self._selection is not None
        if self._time is not None:
            clock = control.scalar(sa.text(_CLOCKS[control.dialect.name].replace(":", r"\:")))
            moment = dt.datetime.fromisoformat(clock) if isinstance(clock, str) else clock
            moment = moment.replace(tzinfo=moment.tzinfo or dt.UTC)
            if self.position is None and self._config.timestamp_initial is not None:
                self.position = self._initial(moment)
            delay = dt.timedelta(milliseconds=self._config.timestamp_delay_interval_ms)
            return floor(moment - max(_MARGIN, delay), self._digits)
        assert self._id is not None
        greatest = sa.select(sa.func.max(self._id)).select_from(self._selection.source)
        mark = control.scalar(greatest.where(*self._after()))
        if mark is None or (self._marked is not None and mark <= self._marked):
            return None
        self._marked = int(mark)
        return self._marked

    def _initial(self, moment: dt.datetime) -> Position:
        ms = self._config.timestamp_initial
        assert ms is not None
        return Position(
            moment if ms < 0 else EPOCH + dt.timedelta(milliseconds=ms), -1 if self._id is not None else None
        )

    def _observe(self, control: sa.Connection) -> Observation | None:
        if self._observer is None:
            self._observer = self._make_observer(control)
        return self._observer.observe(control)

    def _make_observer(self, control: sa.Connection) -> PostgresObserver | MariadbObserver | SqliteObserver:
        by_id = self._time is None
        match control.dialect.name:
            case "postgresql":
                assert self._selection is not None
                source = self._selection.source
                is_table = isinstance(source, sa.Table) and self._selection.tells_null
                name = name_as_value(control.dialect, source) if is_table else None
                return PostgresObserver(control, name, by_id=by_id)
            case "sqlite":
                return SqliteObserver(by_id=by_id)
        return MariadbObserver(control, self.name)

    def _after(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions for rows behind the position."""
        if self.position is None:
            return []
        moment, number = self.position
        if self._time is None or moment is None:
            return [] if self._id is None or number is None else [self._id > number]
        if self._id is None or number is None:
            return [self._time > self._high(moment)]
        same = sa.and_(self._time >= self._low(moment), self._id > number)
        return [sa.or_(self._time > self._high(moment), same)]

    def _low(self, moment: dt.datetime) -> Any:
        """Return the first form of a time as the column's type has it. SQLite's text has several forms."""
        local = (
            moment if self._naive_zone is None else moment.astimezone(self._naive_zone).replace(tzinfo=None)
        )
        if not self._is_text_time:
            return local
        text = local.isoformat(sep=" ", timespec="microseconds").rstrip("0").rstrip(".")
        return sa.literal(text, sa.Text)

    def _high(self, moment: dt.datetime) -> Any:
        if not self._is_text_time:
            return self._low(moment)
        local = (
            moment if self._naive_zone is None else moment.astimezone(self._naive_zone).replace(tzinfo=None)
        )
        return sa.literal(local.isoformat(sep=" ", timespec="microseconds"), sa.Text)

    def _records(self, rows: list[Any], following: Any | None) -> SourceBatch | None:
        """Return the rows that convert, and report the others; None if no row converts."""
        complete = self._complete(rows, following)
        values = self._conversion.values(rows, self._leave_out)
        if complete is not None:
            self.position = complete
        self.has_left_out = not values and self.position is not None
        if not values:
            return None
        return SourceBatch(
            self._topic,
            values,
            source_partition=self.partition,
            source_offset=None if self.position is None else self.position.offset(),
            value_schema=self._schema or self._schema_of(values),
        )

    def _leave_out(self, row: Any, error: DataError) -> None:
        value = self._conversion.as_read(row)
        self._report(SourceRecord(self._topic, value, source_partition=self.partition), error)

    def _complete(self, rows: list[Any], following: Any | None) -> Position | None:
        """Return the last position before which no row is missing: among equal times only the last one is."""
        if self._config.mode == "bulk":
            return None
        if self._time is None or self._id is not None or following is None:
            return self._position_of(rows[-1])
        later = self._time_of(following)
        for row in reversed(rows):
            if (moment := self._time_of(row)) != later:
                return Position(moment)
        return None

    def _position_of(self, row: Any) -> Position:
        return Position(
            None if self._time is None else self._time_of(row),
            None if self._id_index is None else int(row[self._id_index]),
        )

    def _time_of(self, row: Any) -> dt.datetime:
        for index, convert in self._time_columns:
            value = row[index]
            if value is not None:
                try:
                    moment: dt.datetime = convert(value)
                except CONVERSION_ERRORS as e:
                    raise DataError(
                        f"{self.name}: the timestamp {value!r} is no position: {e}; correct the row, or "
                        "leave it out with timestamp.initial or a query"
                    ) from e
                return moment
        raise DataError(f"{self.name}: a row has no timestamp")

    def _schema_of(self, values: list[dict[str, Any]]) -> Schema:
        assert self._selection is not None
        fields = {}
        for each in self._selection.columns:
            samples = (value[each.name] for value in values)
            first = next((value for value in samples if value is not None), None)
            fields[each.name] = each.schema or schema_of_value(first)
        return schema.struct(fields)


def _digits(kind: sa.types.TypeEngine[Any], backend: str) -> int:
    """Return the digits of the second that a column of times has."""
    if backend == "sqlite":
        return 0  # CURRENT_TIMESTAMP has none
    if backend == "postgresql":
        precision = getattr(kind, "precision", None)
        return 6 if precision is None else int(precision)
    return int(getattr(kind, "fsp", None) or 0)
