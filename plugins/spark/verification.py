"""Proves that a table has each offset of its topics once, by reading the log and the table's files.

The table's commits only say which files belong to the table and which offsets they should have. What is
counted are the records in the log, without control records and aborted ones, and the rows in the files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from plugins.spark.columns import GENERATION, record_prefix
from plugins.spark.errors import id_text
from plugins.spark.manifest import DataFile, Manifest, TopicPosition
from plugins.spark.offset_counts import Differences, OffsetCounts, compare
from plugins.spark.sink_table import SinkTable
from plugins.spark.table import table_columns

Advance = Callable[[float], None]
Span = tuple[int, int]
"""Offsets from the first up to, but not including, the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPartition:
    """The comparison of one partition with the log.

    start, end: the offsets that the table should have. records: those in the log. rows: those in the files.
    purged: offsets that retention has removed from the log, so that nothing proves them. problem: why the log
    could not be compared, or "".
    """

    topic: str
    partition: int
    start: int
    end: int
    records: int
    rows: int
    purged: int
    differences: Differences
    problem: str = ""

    @property
    def is_exact(self) -> bool:
        """True if the table has each offset in the log once, and no other."""
        differences = self.differences
        return not (self.problem or differences.missing or differences.repeated or differences.foreign)


async def verify_table(
    client: Client, table: SinkTable, *, advance: Advance = lambda offsets: None
) -> list[VerifiedPartition]:
    """Compare a table with the log. `advance` is called with numbers of offsets that were read from the log.

    Raises FileNotFoundError if there is no table or a file of it is missing, and KafkaError.
    """
    state = table.latest()
    if state is None:
        raise FileNotFoundError(f"{table.path}: no table")
    rows = count_rows(table, state, table.files(state))
    metadata = await client.metadata(list(state.positions), allow_missing=True)
    results = []
    for topic, position in state.positions.items():
        described = metadata.topics.get(topic)
        problem = ""
        if described is None or not described.partitions:
            problem = "the topic is gone"
        elif described.topic_id.hex() != position.topic_id:
            problem = (
                f"the topic was made again: the table has topic id {id_text(position.topic_id)}, the cluster "
                f"has {id_text(described.topic_id.hex())}"
            )
        for partition in sorted(position.offsets):
            tp = TopicPartition(topic, partition)
            counted = rows.pop((topic, partition, position.generation), OffsetCounts())
            results.append(await _verify_partition(client, tp, position, counted, problem, advance))
    return results + [_without_log(key, counted) for key, counted in sorted(rows.items())]


def spans(position: TopicPosition, partition: int) -> list[Span]:
    """Return the offsets of a partition that the table should have, in order."""
    end = position.offsets[partition]
    live = (position.starts.get(partition, 0), end)
    backfill = position.backfills.get(partition)
    return [live] if backfill is None else [(backfill.start, backfill.next), live]


async def _verify_partition(
    client: Client,
    tp: TopicPartition,
    position: TopicPosition,
    rows: OffsetCounts,
    problem: str,
    advance: Advance,
) -> VerifiedPartition:
    expected = spans(position, tp.partition)
    start, end = expected[0][0], expected[-1][1]
    log, log_start = OffsetCounts(), end
    if not problem:
        admin = Admin(client)
        log_start = (await admin.list_offsets({tp: "earliest"}))[tp].offset
        log_end = (await admin.list_offsets({tp: "latest"}))[tp].offset
        if log_end < end:
            problem = f"the log ends at {log_end}, before the table's next offset {end}"
        for span_start, span_end in expected:
            first = max(span_start, log_start)
            async for offsets in read_offsets(client, tp, (first, min(span_end, log_end)), advance):
                log.add(offsets)
    return VerifiedPartition(
        topic=tp.topic,
        partition=tp.partition,
        start=start,
        end=end,
        records=log.total(),
        rows=rows.total(),
        purged=max(0, min(log_start, end) - start),
        differences=compare(log, rows, log_start),
        problem=problem,
    )


def _without_log(key: tuple[str, int, int], rows: OffsetCounts) -> VerifiedPartition:
    """Return the result for rows of a topic that was made again, of which there is no log any more."""
    topic, partition, generation = key
    return VerifiedPartition(
        topic=f"{topic} (made again later, {generation})",
        partition=partition,
        start=0,
        end=0,
        records=0,
        rows=rows.total(),
        purged=rows.total(),
        differences=compare(OffsetCounts(), rows, 1 << 62),
    )


async def read_offsets(
    client: Client, tp: TopicPartition, span: Span, advance: Advance
) -> AsyncIterator[Sequence[int]]:
    """Yield the offsets of the committed records in the span."""
    position, end = span
    if position >= end:
        return
    async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
        fetcher.assign({tp: position})
        while position < end:
            for fetched in await fetcher.fetch():
                for part in fetched.parts():
                    yield [record[0] for record in part.records if span[0] <= record[0] < end]
                advance(min(fetched.next_offset, end) - position)
                position = fetched.next_offset


def count_rows(
    table: SinkTable, state: Manifest, files: Iterable[DataFile]
) -> dict[tuple[str, int, int], OffsetCounts]:
    """Return the offsets in the files, by topic, partition and generation of the topic."""
    counts: dict[tuple[str, int, int], OffsetCounts] = {}
    prefix = record_prefix(table_columns(state)) or ""
    for file in files:
        for row in _keyed(table, file, prefix):
            key = (row["topic"], row["partition"], row["generation"] or 0)
            counts.setdefault(key, OffsetCounts()).add(row["offsets"])
    return counts


def _keyed(table: SinkTable, file: DataFile, prefix: str) -> Iterable[Mapping[str, Any]]:
    """Yield the offsets of one file, grouped."""
    kinds = {prefix + "topic": pa.string(), prefix + "partition": pa.int32(), prefix + "offset": pa.int64()}
    path = table.path / file.path
    if not path.exists():
        raise FileNotFoundError(f"{path} is in the table and missing")
    folders = [folder.partition("=")[0] for folder in table.folders(file)]
    partitioning = ds.partitioning(
        pa.schema([(name, kind) for name, kind in kinds.items() if name in folders]), flavor="hive"
    )
    base = path.parents[len(folders)]
    dataset = ds.dataset(
        [str(path)], format="parquet", partitioning=partitioning, partition_base_dir=str(base)
    )
    columns = {name.removeprefix(prefix): ds.field(name) for name in kinds}
    has_generation = prefix + GENERATION in dataset.schema.names
    columns["generation"] = ds.field(prefix + GENERATION) if has_generation else pc.scalar(0)
    for batch in dataset.to_batches(columns=columns):
        keys = pa.Table.from_batches([batch])
        for key in keys.group_by(["topic", "partition", "generation"]).aggregate([]).to_pylist():
            yield {**key, "offsets": _offsets(keys, key)}


def _offsets(rows: pa.Table, key: Mapping[str, Any]) -> Any:
    same = pc.and_(
        pc.equal(rows["topic"], pa.scalar(key["topic"], rows["topic"].type)),
        pc.equal(rows["partition"], pa.scalar(key["partition"], rows["partition"].type)),
    )
    if key["generation"] is None:
        generation = pc.is_null(rows["generation"])
    else:
        generation = pc.equal(rows["generation"], pa.scalar(key["generation"], rows["generation"].type))
    return rows.filter(pc.and_(same, pc.fill_null(generation, False)))["offset"].to_numpy()
