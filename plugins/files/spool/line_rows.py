"""Rows of files with lines: text, JSON lines and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from connect.api import DataError, Schema
from plugins.files.formats import CsvFormat, Format, JsonFormat, TextFormat
from plugins.files.lines import Lines
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.csv_schema import CsvSchema
from plugins.files.spool.rows import BadRow, Rows


class LineRows:
    """A reader of lines. A line that cannot be decoded, or a row that is no value, is one bad row."""

    def __init__(self, path: Path, config: SpoolSourceConfig, name: str, position: int, line: int) -> None:
        self._lines = Lines(path, config.encoding, tail=False)
        self._format: Format
        self._convert: Callable[[dict[str, Any]], None] | None = None
        self.value_schema: Schema | None = None
        match name:
            case "csv":
                self._format = CsvFormat(config, config.key_field)
            case "jsonl":
                self._format = JsonFormat()
            case _:
                self._format = TextFormat()
        try:
            self._begin(config, position, line)
        except BaseException:
            self._lines.close()
            raise
        self._rows: Iterator[Any] = self._format.rows(self._lines)

    def _begin(self, config: SpoolSourceConfig, position: int, line: int) -> None:
        """Go behind the header, and behind what was read before."""
        self._format.begin(self._lines)
        if isinstance(self._format, CsvFormat) and config.csv_schema and self._format.fields:
            declared = CsvSchema(config.csv_schema, self._format.fields)
            self.value_schema, self._convert = declared.schema, declared.convert
        if position > self._lines.position:
            self._lines.seek(position, line)

    @property
    def position(self) -> int:
        """The byte in the decompressed file behind the rows that were read."""
        return self._lines.position

    @property
    def line(self) -> int:
        """The number of lines read."""
        return self._lines.line

    def read(self, count: int) -> Rows:
        """Return the next rows, at most `count`."""
        try:
            rows, numbers = self._take(count) if self._format.by_line else self._iterate(count)
        except _Undecodable as e:
            rows, numbers = e.rows, e.numbers
            number = self._lines.line + 1
            raw = self._lines.skip()
            self._rows = self._format.rows(self._lines)
            return self._converted(
                rows, numbers, [BadRow(number, raw, DataError(f"{e.error}; see encoding"))]
            )
        return self._converted(rows, numbers, [], ended=len(rows) < count)

    def _take(self, count: int) -> tuple[list[Any], list[int]]:
        position, first = self._lines.position, self._lines.line
        try:
            rows = self._lines.take(count)
        except UnicodeDecodeError as e:
            good = self._lines.line - first
            self._lines.seek(position, first)
            rows = self._lines.take(good) if good else []
            raise _Undecodable(e, rows, list(range(first + 1, first + good + 1))) from e
        return rows, list(range(first + 1, first + len(rows) + 1))

    def _iterate(self, count: int) -> tuple[list[Any], list[int]]:
        rows: list[Any] = []
        numbers: list[int] = []
        lines = self._lines
        try:
            for row in self._rows:
                rows.append(row)
                numbers.append(lines.line)
                if len(rows) == count:
                    break
        except UnicodeDecodeError as e:
            raise _Undecodable(e, rows, numbers) from e
        return rows, numbers

    def _converted(
        self, rows: Sequence[Any], numbers: list[int], bad: list[BadRow], *, ended: bool = False
    ) -> Rows:
        if not isinstance(self._format, TextFormat) and not all(rows):
            pairs = [(row, number) for row, number in zip(rows, numbers, strict=True) if row]
            rows, numbers = [row for row, _ in pairs], [number for _, number in pairs]
        try:
            values = self._values(rows)
            if len(values) == len(rows):
                return Rows(values, numbers, bad, ended)
        except DataError:
            pass
        return self._one_by_one(rows, numbers, bad, ended)

    def _one_by_one(self, rows: Sequence[Any], numbers: list[int], bad: list[BadRow], ended: bool) -> Rows:
        values, good, wrong = [], [], []
        for row, number in zip(rows, numbers, strict=True):
            try:
                for value in self._values([row]):
                    values.append(value)
                    good.append(number)
            except DataError as e:
                wrong.append(BadRow(number, row, DataError(e.args[0])))
        return Rows(values, good, [*wrong, *bad], ended)

    def _values(self, rows: Sequence[Any]) -> list[Any]:
        values = self._format.values(rows)
        if self._convert is not None:
            for value in values:
                self._convert(value)
        return values

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class _Undecodable(Exception):
    """A signal that the line behind these rows cannot be decoded."""

    def __init__(self, error: UnicodeDecodeError, rows: list[Any], numbers: list[int]) -> None:
        super().__init__(error)
        self.error, self.rows, self.numbers = error, rows, numbers
