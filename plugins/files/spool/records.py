"""Records of rows: keys, times and line numbers; rows of which none can be made are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from connect.api import DataError, SourceBatch, SourceRecord
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.file import SpoolFile
from plugins.files.spool.rows import BadRow, Rows
from plugins.files.timestamps import timestamp_rule

Report = Callable[[SourceRecord, BaseException], None]
_Columns = tuple[list[Any] | None, Sequence[int | None]]


class Recorder:
    """Makes the records of one task."""

    def __init__(self, config: SpoolSourceConfig, report: Report) -> None:
        self._config = config
        self._report = report
        self._stamp = timestamp_rule(config)

    def batch(self, file: SpoolFile, rows: Rows) -> SourceBatch | None:
        """Return the records of rows that were read from a file; None if there are none.

        Bad rows are reported, each with its file and line.
        """
        values, bad = list(rows.values), list(rows.bad)
        if self._config.line_field is not None:
            values, numbers = self._numbered(values, rows.numbers, bad)
        else:
            numbers = list(rows.numbers)
        try:
            keys, times = self._columns(values)
        except DataError:
            values = self._good(values, numbers, bad)
            keys, times = self._columns(values)
        self._report_all(file, bad)
        if not values:
            return None
        schema = file.value_schema
        if schema is not None and self._config.line_field is not None:
            schema = None
        return SourceBatch(
            self._config.topic,
            values,
            keys=keys,
            timestamps=times,
            source_partition=file.partition,
            source_offset=file.offset.document(),
            value_schema=schema,
        )

    def _columns(self, values: list[Any]) -> _Columns:
        """Return keys and times. Raises DataError for a value that lacks them."""
        field = self._config.key_field
        times = self._stamp(values)
        if field is None:
            return None, times
        try:
            return [value.get(field) for value in values], times
        except AttributeError:
            raise DataError(f"no object, and key.field={field} needs one") from None

    def _numbered(
        self, values: list[Any], numbers: Sequence[int], bad: list[BadRow]
    ) -> tuple[list[Any], list[int]]:
        good: list[Any] = []
        lines: list[int] = []
        for value, number in zip(values, numbers, strict=True):
            if isinstance(value, dict):
                value[self._config.line_field] = number
                good.append(value)
                lines.append(number)
            else:
                error = DataError(f"no object to add line.field={self._config.line_field} to")
                bad.append(BadRow(number, value, error))
        return good, lines

    def _good(self, values: list[Any], numbers: Sequence[int], bad: list[BadRow]) -> list[Any]:
        good = []
        for value, number in zip(values, numbers, strict=True):
            try:
                self._columns([value])
                good.append(value)
            except DataError as e:
                bad.append(BadRow(number, value, e))
        return good

    def _report_all(self, file: SpoolFile, bad: list[BadRow]) -> None:
        for row in sorted(bad, key=lambda each: each.number):
            record = SourceRecord(
                self._config.topic,
                row.raw,
                source_partition=file.partition,
                source_offset={"line": row.number},
            )
            self._report(record, DataError(f"{file}, line {row.number}: {row.error}"))
