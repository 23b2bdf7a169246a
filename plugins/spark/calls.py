"""What the sink asks of the driver process, and what it hears back."""

from __future__ import annotations

import msgspec

from plugins.spark.manifest import DataFile
from plugins.spark.settings import RowShape


class PlannedRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition from `start` up to, without, `end`."""

    topic: str
    partition: int
    start: int
    end: int


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Read these ranges and write them as rows of `shape` below `directory`, which must not exist yet.

    value_schema: JSON form of the values' schema from an earlier batch; None: by the shape, or inferred.
    table_schema: JSON form of the table's columns so far. file_root: the table's folder, which paths in the
    answer are relative to. client_options: further options of the source.
    """

    bootstrap_servers: str
    ranges: tuple[PlannedRange, ...]
    directory: str
    file_root: str
    shape: RowShape
    value_schema: str | None = None
    table_schema: str | None = None
    fail_on_data_loss: bool = True
    fail_on_unreadable_batch: bool = True
    client_options: dict[str, str] = {}


class WrittenRange(msgspec.Struct, frozen=True, kw_only=True):
    """What the written files hold of one partition; offsets are inclusive."""

    topic: str
    partition: int
    rows: int
    first_offset: int
    last_offset: int


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """rows_read: as Spark counted them coming from the log; `files`, `ranges`: read back from the files."""

    rows_read: int
    files: tuple[DataFile, ...]
    ranges: tuple[WrittenRange, ...]
    value_schema: str | None
    table_schema: str
