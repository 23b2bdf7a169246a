"""Tables as the sink writes them, made without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plugins.spark.manifest import DataFile, Manifest, TopicPosition
from plugins.spark.table import ParquetTable

NAMES = ("key", "topic", "partition", "offset", "timestamp", "value")
TABLE_SCHEMA = json.dumps({"fields": [{"name": name} for name in NAMES]})


def columns_of(topic: str, offsets: Sequence[int]) -> dict[str, Any]:
    """Return the columns of rows with these offsets of partition 0."""
    count = len(offsets)
    return {
        "key": pa.nulls(count, pa.binary()),
        "topic": [topic] * count,
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
        "value": [str(offset) for offset in offsets],
    }


def add_rows(
    table: ParquetTable, topic: str, topic_id: str, offsets: Sequence[int], end: int, folder: str = ""
) -> Manifest:
    """Commit a file with a row for each of the offsets of partition 0, and `end` as the next offset."""
    state = table.latest() or table.claim()
    directory = table.batch_directory(state.number + 1) / folder
    directory.mkdir(parents=True)
    path = directory / "part-0.zstd.parquet"
    count = len(offsets)
    pq.write_table(pa.table(columns_of(topic, offsets)), path, compression="zstd")
    file = DataFile(path=str(path.relative_to(table.path)), rows=count, size=path.stat().st_size)
    before = state.positions.get(topic) or TopicPosition(topic_id=topic_id, starts={0: min(offsets)})
    position = TopicPosition(topic_id=topic_id, offsets={0: end}, starts=before.starts)
    manifest = state.next(
        0,
        rows=state.rows + count,
        files=(file,),
        positions=state.positions | {topic: position},
        table_schema=TABLE_SCHEMA,
    )
    table.commit(manifest)
    return manifest
