"""Formats that convert lines to values: CSV, JSON lines, text. Rows are converted a batch at a time.

`rows` reads exactly the lines of a row, so that the position after each row is known: a quoted CSV field may
span lines.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

import msgspec

from connect.api import DataError
from plugins.files.config import FilesSourceConfig
from plugins.files.row_config import CsvSettings

_CELLS_MAX = 200_000
_CELL_SIZE_MAX = 16 << 20
"""Characters of a cell.

Without this bound a missing closing quote would make one cell of the rest of the file.
"""
_INTEGER = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
_LONG_DIGITS = 19
_LONG = range(-(1 << 63), 1 << 63)
"""Range of integers; a larger one becomes a float and loses its last digits."""
_FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)


class Format(Protocol):
    """A format of files."""

    by_line: bool
    """True if a row is always a line, as `Lines.take` gives it."""

    def begin(self, lines: Iterable[str]) -> None:
        """Read the lines before the first row (a CSV header)."""
        ...

    def rows(self, lines: Iterable[str]) -> Iterator[Any]:
        """Return the rows, not converted yet."""
        ...

    def values(self, rows: Sequence[Any]) -> list[Any]:
        """Return the values of rows.

        Raises DataError, with the row's index as `args[1]`, if one is invalid.
        """
        ...

    def forget(self) -> None:
        """Clear the caches."""
        ...


def format_of(config: FilesSourceConfig, path_name: str) -> Format:
    """Return the configured format; `auto` depends on the file's name."""
    name: str = config.format
    if name == "auto":
        suffix = path_name.removesuffix(".gz").removesuffix(".zip").rpartition(".")[2].lower()
        name = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}.get(
            suffix, "text"
        )
    match name:
        case "csv":
            return CsvFormat(config, config.key_field)
        case "json":
            return JsonFormat()
        case _:
            return TextFormat()


class TextFormat:
    """Text: each line is a value."""

    by_line = True

    def begin(self, lines: Iterable[str]) -> None:
        """Do nothing."""

    def rows(self, lines: Iterable[str]) -> Iterator[str]:
        """Return the lines."""
        return iter(lines)

    def values(self, rows: Sequence[str]) -> list[str]:
        """Return the rows: `Lines.take` has cut off their ends."""
        return list(rows)

    def forget(self) -> None:
        """Do nothing."""


class JsonFormat:
    """JSON lines: each line is a document; empty lines are skipped."""

    by_line = True

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode

    def begin(self, lines: Iterable[str]) -> None:
        """Do nothing."""

    def rows(self, lines: Iterable[str]) -> Iterator[str]:
        """Return the lines."""
        return iter(lines)

    def values(self, rows: Sequence[str]) -> list[Any]:
        """Return the documents of the rows."""
        decode, values = self._decode, []
        for i, row in enumerate(rows):
            try:
                if row and not row.isspace():
                    values.append(decode(row))
            except msgspec.DecodeError as e:
                raise DataError(f"a line that is no JSON document: {e}", i) from e
        return values

    def forget(self) -> None:
        """Do nothing."""


class CsvFormat:
    """CSV: each row is a dict of its fields; empty lines are skipped."""

    by_line = False

    def __init__(self, config: CsvSettings, key_field: str | None) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), _CELL_SIZE_MAX))
        self._options: dict[str, Any] = {"delimiter": config.csv_delimiter}
        if config.csv_quote:
            self._options["quotechar"] = config.csv_quote
        else:
            self._options["quoting"] = csv.QUOTE_NONE
        self._header = config.csv_header
        self._key = key_field
        self.fields: list[str] = config.csv_fields
        self._cells = _cells(config)
        self._dicts = _compile([], self._cells)

    def begin(self, lines: Iterable[str]) -> None:
        """Read the header, unless the config gives the names."""
        if self._header:
            header = next(filter(None, self.rows(lines)), [])
            self.fields = self.fields or header
        self._check_fields()
        self._dicts = _compile(self.fields, self._cells)

    def _check_fields(self) -> None:
        """Refuse a name that occurs twice: it would hide a column. An empty file has no names to check."""
        twice = [name for name, count in Counter(self.fields).items() if count > 1]
        if twice:
            raise DataError(f"the header has {twice[0]!r} more than once; name the fields with csv.fields")
        if self._key and self.fields and self._key not in self.fields:
            raise DataError(f"key.field={self._key} is none of the fields {', '.join(self.fields)}")

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Return the rows as lists of strings."""
        return csv.reader(iter(lines), **self._options)

    def values(self, rows: Sequence[list[str]]) -> list[dict[str, Any]]:
        """Return the rows as dicts, with their cells converted as configured."""
        try:
            values = self._dicts([row for row in rows if row])
        except ValueError:
            raise self._complaint(rows) from None
        if len(self._cells) > _CELLS_MAX:
            self._cells.clear()
        return values

    def forget(self) -> None:
        """Clear the values of distinct cells."""
        self._cells.clear()

    def _complaint(self, rows: Sequence[list[str]]) -> DataError:
        wrong = next(i for i, row in enumerate(rows) if row and len(row) != len(self.fields))
        return DataError(f"{len(rows[wrong])} cells where the header names {len(self.fields)}", wrong)


def _compile(fields: Sequence[str], cells: _Cells) -> Callable[[Sequence[list[str]]], list[dict[str, Any]]]:
    """Return a function from rows to dicts, generated as source: `[{"a": c[v0], "b": c[v1]} for v0, v1, in
    rows]`.

    It takes two thirds of the time of `dict(zip(...))`, and raises ValueError for a row of another length.
    """
    cell = "c[v{}]" if cells.active else "v{}"
    names = "".join(f"v{i}, " for i in range(len(fields))) or "*_, "
    items = ", ".join(f"{field!r}: {cell.format(i)}" for i, field in enumerate(fields))
    compiled = eval(f"lambda rows: [{{{items}}} for {names}in rows]", {"c": cells})
    return cast(Callable[[Sequence[list[str]]], list[dict[str, Any]]], compiled)


class _Cells(dict[str, Any]):
    """A cache of converted cells, since columns repeat their values."""

    def __init__(self, nulls: frozenset[str], infer: bool) -> None:
        super().__init__()
        self._nulls = nulls
        self._infer = infer
        self.active = infer or bool(nulls)

    def __missing__(self, cell: str) -> Any:
        value: Any = cell
        if cell in self._nulls:
            value = None
        elif self._infer:
            if _INTEGER.fullmatch(cell):
                # A longer number, such as an account's, stays text: as a float it would lose digits.
                value = int(cell) if len(cell) < _LONG_DIGITS or int(cell) in _LONG else cell
            elif _FLOAT.fullmatch(cell):
                value = float(cell)
        self[cell] = value
        return value


def _cells(config: CsvSettings) -> _Cells:
    infer = config.csv_types == "infer"
    nulls = ("" if infer else None) if config.csv_null is None else config.csv_null
    return _Cells(frozenset() if nulls is None else frozenset(nulls.split(",")), infer)
