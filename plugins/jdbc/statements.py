"""The SQL of a batch: one statement for many rows, in the words of each database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from plugins.jdbc.arrays import array_literal
from plugins.jdbc.layout import Layout
from plugins.jdbc.sink_config import JdbcSinkConfig
from plugins.jdbc.target import Target, conversion

Row = tuple[Any, ...]


class Statement:
    """The statement that writes rows of a layout into a table."""

    def __init__(self, dialect: sa.Dialect, layout: Layout, target: Target, config: JdbcSinkConfig) -> None:
        self._backend = dialect.name
        self._layout = layout
        quote = dialect.identifier_preparer
        self._table = quote.format_table(target.table)
        columns = target.columns(layout.columns)
        self._names = {name: quote.quote(config.name(columns[name].name)) for name in layout.columns}
        self._mark = "?" if self._backend == "sqlite" else "%s"
        self._mode = "delete" if layout.is_delete else config.insert_mode
        kinds = [columns[name].type for name in layout.columns]
        self._type_names = [target.type_names.get(columns[name].name, "") for name in layout.columns]
        self._converts = [conversion(kind, config, self._backend) for kind in kinds]
        self._is_columnar = (
            self._backend == "postgresql"
            and self._mode in ("insert", "upsert")
            and not any(isinstance(kind, postgresql.ARRAY) for kind in kinds)
        )
        # PyMySQL does not make "%%" behind the VALUES of many rows a "%" again.
        self._is_row_by_row = self._backend in ("mysql", "mariadb") and "%" in self._conflict()
        self._sql = self._columnar() if self._is_columnar else self._plain()

    def execute(self, connection: sa.Connection, rows: Sequence[Row]) -> None:
        """Write the rows; unless the mode is `insert`, only the last one of each key."""
        if self._mode == "update" and not self._layout.fields:
            return  # rows of a key alone have nothing to update
        if self._mode != "insert":
            size = len(self._layout.keys)
            rows = list({row[:size]: row for row in rows}.values())
        columns = [
            convert(column) for convert, column in zip(self._converts, zip(*rows, strict=True), strict=True)
        ]
        if self._is_columnar:
            connection.exec_driver_sql(self._sql, tuple(map(array_literal, columns)))
            return
        values = list(zip(*columns, strict=True))
        if self._mode == "update":  # the key stands last in UPDATE
            size = len(self._layout.keys)
            values = [row[size:] + row[:size] for row in values]
        if self._is_row_by_row:
            for row in values:
                connection.exec_driver_sql(self._sql, row)
        else:
            connection.exec_driver_sql(self._sql, values)

    def _columnar(self) -> str:
        """Return an INSERT of PostgreSQL with an array per column, which takes one parse and one message."""
        arrays = ", ".join(f"%s::{kind.replace('%', '%%')}[]" for kind in self._type_names)
        return f"INSERT INTO {self._table} ({self._list()}) SELECT * FROM unnest({arrays}){self._conflict()}"

    def _plain(self) -> str:
        layout, names, mark = self._layout, self._names, self._mark
        where = " AND ".join(f"{names[key]} = {mark}" for key in layout.keys)
        if self._mode == "delete":
            return f"DELETE FROM {self._table} WHERE {where}"
        if self._mode == "update":
            changes = ", ".join(f"{names[each]} = {mark}" for each in layout.fields)
            return f"UPDATE {self._table} SET {changes} WHERE {where}"
        marks = ", ".join([mark] * len(names))
        return f"INSERT INTO {self._table} ({self._list()}) VALUES ({marks}){self._conflict()}"

    def _list(self) -> str:
        return ", ".join(self._names.values())

    def _conflict(self) -> str:
        if self._mode != "upsert":
            return ""
        names, fields = self._names, self._layout.fields
        if self._backend in ("mysql", "mariadb"):
            changed = fields or self._layout.keys[:1]
            changes = ", ".join(f"{names[each]} = VALUES({names[each]})" for each in changed)
            return f" ON DUPLICATE KEY UPDATE {changes}"
        keys = ", ".join(names[key] for key in self._layout.keys)
        if not fields:
            return f" ON CONFLICT ({keys}) DO NOTHING"
        changes = ", ".join(f"{names[each]} = excluded.{names[each]}" for each in fields)
        return f" ON CONFLICT ({keys}) DO UPDATE SET {changes}"
