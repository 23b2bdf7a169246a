"""Rows of a spooled file: what its readers have in common, and the choice of the reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from connect.api import Schema
from plugins.files.decompressed import COMPRESSED, open_decompressed
from plugins.files.spool.config import SpoolSourceConfig

_BY_SUFFIX = {
    "csv": "csv", "tsv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "avro": "avro",
    "parquet": "parquet",
}  # fmt: skip


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


def format_name(config: SpoolSourceConfig, path: Path) -> str:
    """Return the format of a file; `auto` depends on its name."""
    if config.format != "auto":
        return config.format
    name = path.name.lower()
    for suffix in (*COMPRESSED, ".zip"):
        name = name.removesuffix(suffix)
    return _BY_SUFFIX.get(name.rpartition(".")[2], "text")


def can_grow(config: SpoolSourceConfig, path: Path) -> bool:
    """Return True if a longer file may hold the rows of the shorter one at the same bytes."""
    return format_name(config, path) in ("csv", "jsonl", "text") and path.suffix not in (*COMPRESSED, ".zip")


def open_rows(path: Path, config: SpoolSourceConfig, position: int, line: int) -> RowReader:
    """Return a reader of the file's rows behind `position` and `line`.

    Raises ConnectError, OSError, EOFError or ValueError if the file cannot be read.
    """
    name = format_name(config, path)
    if name in ("csv", "jsonl", "text"):
        from plugins.files.spool.line_rows import LineRows

        return LineRows(path, config, name, position, line)
    file = open_decompressed(path, lines=False)
    try:
        return _open_records(file, config, name, line)
    except BaseException:
        file.close()
        raise


def _open_records(file: BinaryIO, config: SpoolSourceConfig, name: str, line: int) -> RowReader:
    """Return the reader of a format without lines; each is imported where it is needed."""
    match name:
        case "avro":
            from plugins.files.spool.avro_rows import AvroRows

            return AvroRows(file, line)
        case "parquet":
            from plugins.files.spool.parquet_rows import ParquetRows

            return ParquetRows(file, line)
        case _:
            from plugins.files.spool.json_rows import JsonRows

            return JsonRows(file, config.encoding, line)
