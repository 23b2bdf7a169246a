"""Delta tables as the sink writes them, made without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from plugins.spark.delta_table import DeltaTable
from plugins.spark.manifest import DataFile, Manifest
from tests.plugins.spark.table_files import columns_of

TOPIC_ID = "01" * 16
RECORD_FIELDS = {
    "key": "binary",
    "topic": "string",
    "partition": "integer",
    "offset": "long",
    "timestamp": "timestamp",
}
HIDDEN_FIELDS = {"_tombstone": "boolean", "_generation": "integer"}


def spark_schema(**fields: Any) -> str:
    """Return the JSON form of a schema of these fields, by name."""
    listed = [{"name": n, "type": kind, "nullable": True, "metadata": {}} for n, kind in fields.items()]
    return json.dumps({"type": "struct", "fields": listed})


def columns(**more: Any) -> str:
    """Return the columns of a new table: the record's, further ones, the hidden ones."""
    return spark_schema(**RECORD_FIELDS, **more, **HIDDEN_FIELDS)


def make_table(path: Path, connector: str = "sink", *, month: bool = False) -> DeltaTable:
    """Create a table, partitioned by `month` if asked for."""
    table = DeltaTable(path, connector)
    more = {"month": "string"} if month else {}
    table.create(lambda: columns(value="string", **more), tuple(more))
    return table


def write_file(
    table: DeltaTable, number: int, topic: str, offsets: Sequence[int], **options: Any
) -> DataFile:
    """Write a file with a row per offset of partition 0, into a folder of its own; nothing is committed.

    Options: `month` (None is a null), `more` (further columns), `generation`.
    """
    directory = table.batch_directory(number)
    if "month" in options:
        month = options["month"]
        directory /= f"month={'__HIVE_DEFAULT_PARTITION__' if month is None else quote(month, safe='é ')}"
    directory.mkdir(parents=True)
    count = len(offsets)
    rows: dict[str, Any] = {
        **columns_of(topic, offsets),
        **options.get("more", {}),
        "_tombstone": [False] * count,
        "_generation": pa.array([options.get("generation", 0)] * count, pa.int32()),
    }
    path = directory / "part-0.zstd.parquet"
    pq.write_table(pa.table(rows), path, compression="zstd")
    return DataFile(path=str(path.relative_to(table.path)), rows=count, size=path.stat().st_size)


def start_topic(
    table: DeltaTable, writer: str, topic: str = "t", topic_id: str = TOPIC_ID, at: int = 0
) -> Manifest:
    """Give partition 0 of a topic its first position, as the sink does before it reads anything."""
    starts = {(topic, 0): at}
    return table.update(
        writer,
        lambda state: state.next(0, positions=state.positions_after(starts, {topic: topic_id}, starts)),  # type: ignore[arg-type]
    )


def add_batch(
    table: DeltaTable,
    writer: str,
    offsets: Sequence[int],
    topic: str = "t",
    *,
    changes: Mapping[str, object] | None = None,
    **options: Any,
) -> Manifest:
    """Write and commit rows with these offsets of a topic that has a position."""
    state = table.latest()
    assert state is not None
    file = write_file(table, state.number + 1, topic, offsets, **options)
    ends, ids = {(topic, 0): max(offsets) + 1}, {topic: state.positions[topic].topic_id}
    return table.update(
        writer,
        lambda newest: newest.next(
            0,
            files=(file,),
            positions=newest.positions_after(ends, ids),  # type: ignore[arg-type]
            **changes or {},
        ),
    )
