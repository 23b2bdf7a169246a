"""Which offsets the next batch takes: a decision on plain values, nothing is asked or done here.

What counts as lost is what Spark's Kafka source calls so: a position that is not in the log any more, a
partition added later whose log does not start at 0, one the table was fed from that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect.api import OffsetRange, TopicPartition
from plugins.spark.calls import PlannedRange
from plugins.spark.errors import DataLost, PartitionGone, TopicRecreated
from plugins.spark.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """`ranges` to read, none empty; `pending`: records in the log behind the table, planned or not.

    `starts`: where partitions begin that the table has no position of yet. `positions`: of every partition,
    once the ranges are in the table.
    """

    ranges: tuple[PlannedRange, ...]
    starts: Mapping[TopicPartition, int]
    positions: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    pending: int


def plan_batch(
    state: Manifest,
    ends: Mapping[TopicPartition, OffsetRange],
    *,
    max_records: int | None = None,
    fail_on_data_loss: bool = True,
    is_read: Callable[[str], bool] = lambda topic: True,
) -> BatchPlan:
    """From the table's positions to the ends; a new table from the log's start on.

    `is_read`: whether a topic the table knows is still to be read. Above `max_records` every partition gives
    in proportion to what it has. Raises TopicRecreated when a topic's id is not the table's, and DataLost
    (see above) unless `fail_on_data_loss` is off: then what there is is taken.
    """
    topic_ids = {tp.topic: found.topic_id.hex() for tp, found in ends.items()}
    for topic, topic_id in topic_ids.items():
        known = state.positions.get(topic)
        if known is not None and known.topic_id != topic_id:
            raise TopicRecreated(topic, known.topic_id, topic_id)
    if fail_on_data_loss:
        _check_gone(state, ends, is_read)
    available = [_available(state, tp, found, fail_on_data_loss) for tp, found in sorted(ends.items())]
    starts = {TopicPartition(r.topic, r.partition): r.start for r in available if _is_new(state, r)}
    pending = sum(r.end - r.start for r in available)
    if max_records is not None and pending > max_records:
        available = [_share(r, max_records, pending) for r in available]
    return BatchPlan(
        ranges=tuple(r for r in available if r.start < r.end),
        starts=starts,
        positions={TopicPartition(r.topic, r.partition): r.end for r in available},
        topic_ids=topic_ids,
        pending=pending,
    )


def _check_gone(
    state: Manifest, ends: Mapping[TopicPartition, OffsetRange], is_read: Callable[[str], bool]
) -> None:
    for topic, known in state.positions.items():
        for partition, offset in known.offsets.items():
            if TopicPartition(topic, partition) not in ends and is_read(topic):
                raise PartitionGone(topic, partition, offset)


def _is_new(state: Manifest, found: PlannedRange) -> bool:
    return state.position(found.topic, found.partition) is None


def _available(
    state: Manifest, tp: TopicPartition, found: OffsetRange, fail_on_data_loss: bool
) -> PlannedRange:
    position = state.position(*tp)
    if position is None:
        # A new table begins at the log start; partitions added later begin at 0, as in Spark.
        position = 0 if state.positions and fail_on_data_loss else found.start
    start = position
    if not found.start <= start <= found.end:
        if fail_on_data_loss:
            raise DataLost(tp.topic, tp.partition, start, found.start if start < found.start else found.end)
        start = found.start
    return PlannedRange(topic=tp.topic, partition=tp.partition, start=start, end=found.end)


def _share(whole: PlannedRange, max_records: int, pending: int) -> PlannedRange:
    size = whole.end - whole.start
    taken = -(-size * max_records // pending)
    return PlannedRange(
        topic=whole.topic, partition=whole.partition, start=whole.start, end=whole.start + taken
    )
