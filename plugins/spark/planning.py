"""Plans the offsets of the next batch: a decision on plain values, without requests.

Lost data is defined as in Spark's Kafka source:
- a position is no longer in the log,
- a partition was added later and its log does not start at 0,
- a partition of the table was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from connect.api import OffsetRange, TopicPartition
from plugins.spark.calls import PlannedRange
from plugins.spark.errors import DataLost, PartitionGone, TopicRecreated
from plugins.spark.manifest import Manifest, TopicPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """A plan: the `ranges` to read, none empty, and `pending`, the records that are not in the table yet.

    `starts` are the first positions of partitions that the table has none of. `positions` are those of every
    partition after the ranges were added to the table.
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
    accepted_ids: Mapping[str, str] | None = None,
    from_latest: bool = False,
) -> BatchPlan:
    """Plan the ranges from the table's positions, or for a new table the log starts, up to `ends`.

    With `from_latest` a new table begins at the log ends.

    `is_read` returns False for topics of the table that are no longer read. `accepted_ids` are ids in hex, of
    topics that were made again and are to be read from their start. With more than `max_records`
    pending, every partition gets a share in proportion to its records. Raises TopicRecreated if a topic's id
    is not the table's, and DataLost (see above) unless `fail_on_data_loss` is False: then the plan has the
    remaining records.
    """
    topic_ids = {tp.topic: offsets.topic_id.hex() for tp, offsets in ends.items()}
    for topic, topic_id in topic_ids.items():
        recorded = state.positions.get(topic)
        if recorded is None or recorded.topic_id == topic_id:
            continue
        if (accepted_ids or {}).get(topic) != topic_id:
            raise TopicRecreated(topic, recorded.topic_id, topic_id)
        empty = TopicPosition(topic_id=topic_id)
        state = msgspec.structs.replace(state, positions=state.positions | {topic: empty})
    if fail_on_data_loss:
        _check_gone(state, ends, is_read)
    available = [
        _available(state, tp, offsets, fail_on_data_loss, from_latest) for tp, offsets in sorted(ends.items())
    ]
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
    for topic, recorded in state.positions.items():
        for partition, offset in recorded.offsets.items():
            if TopicPartition(topic, partition) not in ends and is_read(topic):
                raise PartitionGone(topic, partition, offset)


def _is_new(state: Manifest, planned: PlannedRange) -> bool:
    return state.position(planned.topic, planned.partition) is None


def _available(
    state: Manifest, tp: TopicPartition, log: OffsetRange, fail_on_data_loss: bool, from_latest: bool
) -> PlannedRange:
    position = state.position(*tp)
    if position is None:
        # A new table begins at an end of the log; partitions added later begin at 0, as in Spark.
        if not state.positions:
            position = log.end if from_latest else log.start
        else:
            position = 0 if fail_on_data_loss else log.start
    start = position
    if not log.start <= start <= log.end:
        if fail_on_data_loss:
            raise DataLost(tp.topic, tp.partition, start, log.start if start < log.start else log.end)
        start = log.start
    return PlannedRange(topic=tp.topic, partition=tp.partition, start=start, end=log.end)


def _share(whole: PlannedRange, max_records: int, pending: int) -> PlannedRange:
    size = whole.end - whole.start
    count = -(-size * max_records // pending)
    return msgspec.structs.replace(whole, end=whole.start + count)
