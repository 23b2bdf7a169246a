"""The choice of the reader of a spooled file by its format."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from plugins.files.decompressed import COMPRESSED, open_decompressed
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.rows import RowReader

_BY_SUFFIX = {
    "csv": "csv", "tsv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "avro": "avro",
    "parquet": "parquet",
}  # fmt: skip


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
