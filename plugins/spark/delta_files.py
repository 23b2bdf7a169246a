"""The files of a Delta table: the actions that add and remove them, and the files that it has."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable as Handle
from deltalake.transaction import AddAction, RemoveAction

from plugins.spark.errors import TableRefused
from plugins.spark.manifest import DataFile
from plugins.spark.sink_table import DATA

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def partition_folders(file: DataFile) -> tuple[str, ...]:
    """Return the folders that name the file's partition. Files of other writers are not below `data`."""
    parts = Path(file.path).parts
    return parts[2:-1] if parts[0] == DATA else parts[:-1]


def partition_values(file: DataFile) -> dict[str, str | None]:
    """Return the values of the partition columns, as Spark writes them to folder names."""
    values: dict[str, str | None] = {}
    for folder in partition_folders(file):
        name, _, value = folder.partition("=")
        values[name] = None if value == NULL_FOLDER else unquote(value)
    return values


def add_actions(files: Iterable[DataFile], *, is_new_data: bool) -> list[AddAction]:
    """Return the actions that add files; `is_new_data` is False for rows that the table has already."""
    now = int(time.time() * 1000)
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values=partition_values(file),
            modification_time=now,
            data_change=is_new_data,
            stats=json.dumps({"numRecords": file.rows}),
        )
        for file in files
    ]


def remove_actions(files: Iterable[DataFile]) -> list[RemoveAction]:
    """Return the actions that remove files whose rows the table keeps in others."""
    now = int(time.time() * 1000)
    return [RemoveAction(file.path, False, now, file.size, partition_values(file)) for file in files]


def files_of(handle: Handle, partition_columns: Sequence[str]) -> list[DataFile]:
    """Return the files of the table's version, oldest first.

    Raises TableRefused if another writer has added files that only a reader of Delta tables can read.
    """
    actions = pa.table(handle.get_add_actions()).to_pylist()
    files = []
    for action in sorted(actions, key=lambda action: (action["modification_time"], action["path"])):
        path = unquote(action["path"])
        file = DataFile(path=path, rows=action["num_records"] or 0, size=action["size_bytes"])
        names = [folder.partition("=")[0] for folder in partition_folders(file)]
        if "://" in path or path.startswith("/") or names != list(partition_columns):
            raise TableRefused(
                f"{path} was added by another writer, and its folders do not name its partition"
            )
        files.append(file)
    if pa.table(handle.deletion_vectors()).num_rows:
        raise TableRefused("another writer has marked rows as deleted by deletion vectors: rewrite the files")
    return files


def paths_of(handle: Handle) -> list[str]:
    """Return the paths of the files of the table's version, in any order."""
    return [unquote(path) for path in pa.table(handle.get_add_actions())["path"].to_pylist()]


def row_count(handle: Handle) -> int:
    """Return the number of rows; files of which nobody has counted them are left out."""
    return sum(rows or 0 for rows in pa.table(handle.get_add_actions())["num_records"].to_pylist())


def replaced_paths(handle: Handle) -> list[str]:
    """Return the paths of files that are no longer in the table, as far as its log has them."""
    return [
        unquote(path)
        for path in handle.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)
    ]
