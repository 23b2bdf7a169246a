"""Columns of values as PostgreSQL's array literals: one text per column, which the server parses once."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_TEXTS: dict[type, Callable[[Any], str]] = {
    int: str,
    float: repr,
    bool: lambda value: "t" if value else "f",
    str: _quoted,
    NoneType: lambda _: "NULL",
    decimal.Decimal: str,
    bytes: lambda value: '"\\\\x' + value.hex() + '"',
    bytearray: lambda value: '"\\\\x' + value.hex() + '"',
    memoryview: lambda value: '"\\\\x' + value.hex() + '"',
    dt.datetime: lambda value: '"' + value.isoformat(sep=" ") + '"',
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
}


def array_literal(values: Sequence[Any]) -> str:
    """Return the values as an array literal. Raises TypeError for a value of another type."""
    kinds = set(map(type, values))
    if unknown := kinds - _TEXTS.keys():
        raise TypeError(f"{', '.join(kind.__name__ for kind in unknown)} has no text in PostgreSQL")
    if len(kinds) == 1:
        return "{" + ",".join(map(_TEXTS[kinds.pop()], values)) + "}"
    return "{" + ",".join([_TEXTS[type(value)](value) for value in values]) + "}"
