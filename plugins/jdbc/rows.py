"""The conversion of a source's rows, each on its own, so that a bad row disturbs no other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from connect.api import DataError, SourceRecord
from plugins.jdbc.columns import CONVERSION_ERRORS
from plugins.jdbc.selection import Selection

Report = Callable[[SourceRecord, BaseException], None]


class RowConversion:
    """The conversion of one selection's rows, which knows the columns that identify a row."""

    def __init__(self, name: str, selection: Selection, positions: Sequence[sa.ColumnElement[Any]]) -> None:
        """Create the conversion; `name` is the table's, and `positions` are the columns that order rows."""
        self._name = name
        self._names = [each.name for each in selection.columns]
        self._converts = [
            (i, each.name, each.convert)
            for i, each in enumerate(selection.columns)
            if each.convert is not None
        ]
        source = selection.source
        keys = list(source.primary_key.columns) if isinstance(source, sa.Table) else []
        self._identity = [selection.index(each) for each in keys or positions]

    def values(
        self, rows: Sequence[Any], leave_out: Callable[[Any, DataError], None]
    ) -> list[dict[str, Any]]:
        """Return the values of the rows that convert, and call `leave_out` with each other row."""
        names, converts = self._names, self._converts
        values = []
        for row in rows:
            value = dict(zip(names, row, strict=True))
            try:
                for index, name, convert in converts:
                    value[name] = convert(row[index])
            except CONVERSION_ERRORS:
                leave_out(row, self._error(row))
            else:
                values.append(value)
        return values

    def as_read(self, row: Any) -> Mapping[str, Any]:
        """Return a row's values by column, as the driver has read them."""
        return dict(zip(self._names, row, strict=True))

    def _error(self, row: Any) -> DataError:
        """Return the error of the row's first column that does not convert."""
        for index, name, convert in self._converts:
            try:
                convert(row[index])
            except CONVERSION_ERRORS as e:
                error = DataError(
                    f"{self._name}.{name}: {row[index]!r}{self._place(row)} does not convert: {e}; correct "
                    "the row, or set errors.tolerance=all to leave such rows out"
                )
                error.__cause__ = e
                return error
        raise AssertionError("all columns convert")

    def _place(self, row: Any) -> str:
        keys = ", ".join(f"{self._names[i]}={row[i]}" for i in self._identity)
        return f" in the row with {keys}" if keys else f" in the row {tuple(row)!r}"
