"""Rows of a spooled file, and the protocol of their readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from connect.api import Schema


class BadRow(NamedTuple):
    """A row of which no record can be made: its line or record number, content and error."""

    number: int
    raw: Any
    error: Exception


class Rows(NamedTuple):
    """Rows that were read together."""

    values: Sequence[Any] = ()
    numbers: Sequence[int] = ()
    """The line that each value's row ends on, or its record's number; from 1."""
    bad: Sequence[BadRow] = ()
    ended: bool = False
    """True at the end of the file."""


class RowReader(Protocol):
    """A reader of one file, from a position on."""

    @property
    def value_schema(self) -> Schema | None:
        """The schema of all values, if they have one."""
        ...

    @property
    def position(self) -> int:
        """The byte in the decompressed file behind the rows that were read; 0 in formats without lines."""
        ...

    @property
    def line(self) -> int:
        """The number of lines read, or of records."""
        ...

    def read(self, count: int) -> Rows:
        """Return the next rows, at most `count`.

        Raises ConnectError, OSError, EOFError or ValueError if the file cannot be read any further.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...
