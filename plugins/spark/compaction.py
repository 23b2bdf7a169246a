"""Compaction: rewrites many small files of a folder as few large ones, and replaces them in one commit.

A compaction works under the writer that has claimed the table, beside that writer's batches. It fails without
a trace if another writer claims the table meanwhile, or another compaction replaces the same files.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plugins.spark.errors import CompactionLost, Fenced
from plugins.spark.manifest import DataFile, Manifest
from plugins.spark.sink_table import SinkTable

TARGET_BYTES = 128 << 20
"""Size of the files that compaction makes; files of half this size are left alone."""
_ROWS = 1 << 16
"""Rows in memory at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The result of a compaction. `rows` were rewritten; `number` is its manifest, 0 if nothing was to do."""

    number: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    rows: int


def compact(
    table: SinkTable,
    *,
    target_bytes: int = TARGET_BYTES,
    advance: Callable[[float], None] = lambda size: None,
    clock: Callable[[], float] = time.time,
) -> Compaction:
    """Replace small files by larger ones with the same rows. `advance` is called with bytes that were read.

    Raises FileNotFoundError if there is no table, Fenced if another writer claimed it meanwhile, and
    CompactionLost if another compaction was first.
    """
    state = table.latest()
    if state is None:
        raise FileNotFoundError(f"{table.path}: no table")
    bins = plan_bins(table, table.files(state), target_bytes)
    before = [file for group in bins for file in group]
    if not bins:
        return Compaction(number=0, files_before=0, files_after=0, bytes_before=0, bytes_after=0, rows=0)
    directory = table.batch_directory(state.number + 1)
    try:
        after = tuple(_merge(table, directory, group, advance) for group in bins)
        replaced = tuple(file.path for file in before)

        def replace(newest: Manifest) -> Manifest:
            if not {file.path for file in table.files(newest)}.issuperset(replaced):
                raise CompactionLost(f"{table.path}: another compaction has replaced the same files")
            return newest.next(int(clock() * 1000), files=after, removed=replaced)

        committed = table.update(state.writer, replace)
    except BaseException as e:
        if not _is_committed(table, directory):
            shutil.rmtree(directory, ignore_errors=True)
        newest = table.latest()
        if isinstance(e, FileNotFoundError) and newest is not None and newest.writer != state.writer:
            # A writer that starts removes folders that no manifest names.
            raise Fenced(f"{table.path}: a writer has claimed the table during the compaction") from e
        raise
    return Compaction(
        number=committed.number,
        files_before=len(before),
        files_after=len(after),
        bytes_before=sum(file.size for file in before),
        bytes_after=sum(file.size for file in after),
        rows=sum(file.rows for file in after),
    )


def plan_bins(table: SinkTable, files: Sequence[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Return groups of at least two small files, each of one folder and one schema, in order of commit."""
    small: dict[tuple[tuple[str, ...], str], list[DataFile]] = {}
    candidates: dict[tuple[str, ...], list[DataFile]] = {}
    for file in files:
        if file.size * 2 < target_bytes:
            candidates.setdefault(table.folders(file), []).append(file)
    for folder, alone in candidates.items():
        for file in alone if len(alone) > 1 else ():
            schema = pq.read_schema(table.path / file.path).remove_metadata()
            small.setdefault((folder, str(schema)), []).append(file)
    bins: list[list[DataFile]] = []
    for group in small.values():
        filled: list[list[DataFile]] = [[]]
        size = 0
        for file in group:
            if size + file.size > target_bytes:
                filled.append([])
                size = 0
            filled[-1].append(file)
            size += file.size
        bins += [each for each in filled if len(each) > 1]
    return bins


def _merge(
    table: SinkTable, directory: Path, files: Sequence[DataFile], advance: Callable[[float], None]
) -> DataFile:
    """Write the rows of the files to one new file, in their order, and sync it."""
    folder = directory.joinpath(*table.folders(files[0]))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"compacted-{secrets.token_hex(8)}.zstd.parquet"
    schema: pa.Schema = pq.read_schema(table.path / files[0].path)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for file in files:
            with pq.ParquetFile(table.path / file.path) as source:
                for batch in source.iter_batches(batch_size=_ROWS):
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            advance(file.size)
    with open(path, "rb") as written:
        os.fsync(written.fileno())
    rows = pq.read_metadata(path).num_rows
    expected = sum(file.rows for file in files)
    if rows != expected:
        raise CompactionLost(f"{path} has {rows} rows, and the files that it replaces have {expected}")
    return DataFile(path=str(path.relative_to(table.path)), rows=rows, size=path.stat().st_size)


def _is_committed(table: SinkTable, directory: Path) -> bool:
    """Return True if the table names files of the directory: the commit may be durable though it failed."""
    return any(directory.name in Path(file.path).parts for file in table.files())
