"""Declared columns of CSV: the schema of the rows, and the exact conversion of their cells."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Sequence
from typing import Any

from connect.api import ConfigError, DataError, Schema, schema

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False}
_DECIMAL = re.compile(r"decimal\((\d{1,3})\)")


class CsvSchema:
    """The columns of one file. Raises ConfigError for a type that does not exist, DataError for a column."""

    def __init__(self, declared: Sequence[str], columns: Sequence[str]) -> None:
        """Create it from `name:type` texts and the names in the file's header."""
        types = dict(map(_split, declared))
        if missing := types.keys() - set(columns):
            raise DataError(f"csv.schema has {', '.join(sorted(missing))}, the header has not")
        fields = {name: schema.string(optional=True) for name in columns}
        self._cells: list[tuple[str, Callable[[str], Any], str]] = []
        for name, kind in types.items():
            fields[name], convert = _column(kind)
            if convert is not str:
                self._cells.append((name, convert, kind))
        self.schema: Schema = schema.struct(fields)

    def convert(self, value: dict[str, Any]) -> None:
        """Convert the cells of a row in place. Raises DataError that names the column and the cell."""
        for name, convert, kind in self._cells:
            cell = value[name]
            if cell is None or cell == "":
                value[name] = None
                continue
            try:
                value[name] = convert(cell)
            except (ValueError, ArithmeticError, KeyError):
                raise DataError(f"column {name}: {cell!r} is no {kind}", 0) from None


def _split(text: str) -> tuple[str, str]:
    name, _, kind = (part.strip() for part in text.rpartition(":"))
    if not name:
        raise ConfigError("csv.schema", text, "must be name:type")
    _column(kind)
    return name, kind


def _column(kind: str) -> tuple[Schema, Callable[[str], Any]]:
    if match := _DECIMAL.fullmatch(kind):
        return schema.decimal_(int(match[1]), optional=True), _decimal(int(match[1]))
    match kind:
        case "int8" | "int16" | "int32" | "int64":
            make = {"int8": schema.int8, "int16": schema.int16, "int32": schema.int32, "int64": schema.int64}
            return make[kind](optional=True), _integer(int(kind[3:]))
        case "float":
            return schema.float32(optional=True), float
        case "double":
            return schema.float64(optional=True), float
        case "boolean":
            return schema.boolean(optional=True), lambda cell: _BOOLEANS[cell.lower()]
        case "string":
            return schema.string(optional=True), str
        case "date":
            return schema.date(optional=True), dt.date.fromisoformat
        case "time":
            return schema.time(optional=True), dt.time.fromisoformat
        case "timestamp":
            return schema.timestamp(optional=True), _timestamp
    raise ConfigError("csv.schema", kind, "must be a type: int64, decimal(2), string ...")


def _integer(bits: int) -> Callable[[str], int]:
    numbers = range(-(1 << bits - 1), 1 << bits - 1)

    def convert(cell: str) -> int:
        if len(cell) > 40 or not _INTEGER.fullmatch(cell) or (number := int(cell)) not in numbers:
            raise ValueError(cell)
        return number

    return convert


def _decimal(scale: int) -> Callable[[str], decimal.Decimal]:
    step = decimal.Decimal(1).scaleb(-scale)
    exact = decimal.Context(prec=200, traps=[decimal.Inexact, decimal.InvalidOperation])

    def convert(cell: str) -> decimal.Decimal:
        number = decimal.Decimal(cell)
        if not number.is_finite():
            raise ValueError(cell)
        return number.quantize(step, context=exact)  # raises if digits would be lost

    return convert


def _timestamp(cell: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(cell)
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
