"""Requests of the sink to the driver process, and their responses."""

from __future__ import annotations

import msgspec

from plugins.spark.manifest import DataFile
from plugins.spark.settings import RowShape


class PlannedRange(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition from `start` up to, but not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to read ranges and write them as rows of `shape` to `directory`, which must not exist yet.

    value_schema: JSON form of the values' columns from earlier batches; None: from the shape, or inferred.
    topic_ids: the ids, in hex, of the topics that the ranges are of; zeros if a broker has none.
    inferred_topics: the topics whose fields are in `value_schema`; those of others are added by inference.
    evolve: whether fields that later values bring become columns, too.
    generations: how often each topic was made again; topics that are not in it were never.
    table_schema: JSON form of the table's columns so far. file_root: the table's folder; paths in the
    response are relative to it. client_options: further options of the source.
    """

    bootstrap_servers: str
    ranges: tuple[PlannedRange, ...]
    directory: str
    file_root: str
    shape: RowShape
    value_schema: str | None = None
    table_schema: str | None = None
    topic_ids: dict[str, str] = {}
    inferred_topics: tuple[str, ...] = ()
    generations: dict[str, int] = {}
    evolve: bool = False
    fail_on_data_loss: bool = True
    fail_on_unreadable_batch: bool = True
    client_options: dict[str, str] = {}


class WrittenRange(msgspec.Struct, frozen=True, kw_only=True):
    """The rows and offsets (inclusive) of one partition in the written files."""

    topic: str
    partition: int
    rows: int
    first_offset: int
    last_offset: int


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a write.

    Spark counted `rows_read` from the log; `files` and `ranges` come from the files. `notes` are sentences
    for people: fields without a column, values that do not fit.
    """

    rows_read: int
    files: tuple[DataFile, ...]
    ranges: tuple[WrittenRange, ...]
    value_schema: str | None
    table_schema: str
    inferred_topics: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
