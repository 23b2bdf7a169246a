"""Backfill: adds records from before the table's first offsets, beside the live flow.

The offsets are a second set of positions in the same manifests, and the sink's task adds them: there is still
one writer, and still each offset once. A backfill ends where the table begins, so it repeats nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kafka_client import Admin, Client, TopicPartition
from plugins.spark.calls import PlannedRange
from plugins.spark.manifest import Backfill, Manifest, TopicPosition
from plugins.spark.sink_table import SinkTable

BATCH = 1_000_000
"""Offsets in one batch of a backfill, unless max.offsets.per.trigger says less."""


async def request_backfill(
    client: Client, table: SinkTable, timestamp_ms: int, now_ms: int
) -> dict[TopicPartition, Backfill]:
    """Note in the table that its sink has to add records from this time on. Return the offsets to add.

    Partitions without records from then on before the table's first offset are left out. Raises
    FileNotFoundError if there is no table, ValueError if a backfill of it is at work, Fenced and KafkaError.
    """
    state = table.latest()
    if state is None:
        raise FileNotFoundError(f"{table.path}: no table")
    starts = {
        TopicPartition(topic, partition): start
        for topic, position in state.positions.items()
        for partition, start in position.starts.items()
    }
    earliest = await Admin(client).list_offsets(dict.fromkeys(starts, timestamp_ms))
    backfills = {
        tp: Backfill(start=earliest[tp].offset, next=earliest[tp].offset, end=start)
        for tp, start in starts.items()
        if 0 <= earliest[tp].offset < start
    }

    def add(newest: Manifest) -> Manifest:
        if any(position.backfills for position in newest.positions.values()):
            raise ValueError(f"{table.path}: a backfill is at work; wait until it has ended")
        return newest.next(now_ms, positions=with_backfills(newest, backfills))

    if backfills:
        table.update(state.writer, add)
    return backfills


def with_backfills(state: Manifest, backfills: Mapping[TopicPartition, Backfill]) -> dict[str, TopicPosition]:
    """Return the positions with these backfills; one that has ended becomes the partition's first offset."""
    positions = dict(state.positions)
    for (topic, partition), backfill in backfills.items():
        position = positions[topic]
        others = {p: other for p, other in position.backfills.items() if p != partition}
        if backfill.next < backfill.end:
            changed = msgspec.structs.replace(position, backfills=others | {partition: backfill})
        else:
            starts = position.starts | {partition: backfill.start}
            changed = msgspec.structs.replace(position, backfills=others, starts=starts)
        positions[topic] = changed
    return positions


def plan_backfill(state: Manifest, topic_ids: Mapping[str, str], max_records: int) -> list[PlannedRange]:
    """Return the next ranges of the backfill, of topics with their ids in the cluster; none if there is none.

    Partitions share `max_records` evenly.
    """
    pending = [
        (topic, partition, backfill)
        for topic, position in sorted(state.positions.items())
        if topic_ids.get(topic) == position.topic_id
        for partition, backfill in sorted(position.backfills.items())
    ]
    share = max(1, max_records // max(1, len(pending)))
    return [
        PlannedRange(topic=topic, partition=partition, start=b.next, end=min(b.end, b.next + share))
        for topic, partition, b in pending
    ]


def after_ranges(state: Manifest, ranges: list[PlannedRange]) -> dict[TopicPartition, Backfill]:
    """Return the backfills after these ranges were added to the table."""
    return {
        TopicPartition(r.topic, r.partition): msgspec.structs.replace(
            state.positions[r.topic].backfills[r.partition], next=r.end
        )
        for r in ranges
    }
