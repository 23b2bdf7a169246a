"""Looks at the files of a batch after Spark wrote them: their sizes, rows and offsets."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from plugins.spark.calls import WrittenRange
from plugins.spark.manifest import DataFile
from plugins.spark.settings import RowShape


def parquet_paths(directory: str) -> list[Path]:
    """Return the paths of the Parquet files below the directory, in order."""
    return sorted(path for path in Path(directory).rglob("*.parquet") if not path.name.startswith((".", "_")))


def written_files(directory: str, root: str) -> tuple[DataFile, ...]:
    """Sync the files. Return them with the numbers of rows in their footers."""
    files = []
    for path in parquet_paths(directory):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        rows = pq.read_metadata(path).num_rows
        files.append(DataFile(path=str(path.relative_to(root)), rows=rows, size=path.stat().st_size))
    return tuple(files)


def written_ranges(directory: str, shape: RowShape) -> tuple[WrittenRange, ...]:
    """Return rows, first and last offset per topic-partition, read from the files and folder names.

    The table's partition columns are only in the folder names.
    """
    topic, partition, offset = (shape.record_prefix + name for name in ("topic", "partition", "offset"))
    paths = [str(path) for path in parquet_paths(directory)]
    if not paths:
        return ()
    kinds = {topic: pa.string(), partition: pa.int32(), offset: pa.int64()}
    in_folders = [(c.name, kinds[c.name]) for c in shape.partition_by if c.name in kinds]
    folders = ds.partitioning(pa.schema(in_folders), flavor="hive")
    files = ds.dataset(paths, format="parquet", partitioning=folders, partition_base_dir=directory)
    columns = files.to_table(columns=[topic, partition, offset])
    counted = columns.group_by([topic, partition]).aggregate(
        [(offset, "count"), (offset, "min"), (offset, "max")]
    )
    return tuple(
        WrittenRange(
            topic=row[topic],
            partition=row[partition],
            rows=row[f"{offset}_count"],
            first_offset=row[f"{offset}_min"],
            last_offset=row[f"{offset}_max"],
        )
        for row in counted.to_pylist()
    )
