"""Which offsets the next batch takes: a decision on plain values, nothing is asked or done here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connect.api import OffsetRange, TopicPartition
from plugins.spark.calls import PlannedRange
from plugins.spark.errors import DataLost, TopicRecreated
from plugins.spark.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """`ranges` to read, none empty; `pending`: records in the log behind the table, planned or not."""

    ranges: tuple[PlannedRange, ...]
    topic_ids: Mapping[str, str]
    pending: int


def plan_batch(
    state: Manifest,
    ends: Mapping[TopicPartition, OffsetRange],
    *,
    max_records: int | None = None,
    fail_on_data_loss: bool = True,
) -> BatchPlan:
    """From the table's positions to the ends, a new partition from its log start on.

    Above `max_records` every partition gives in proportion to what it has. Raises TopicRecreated when a
    topic's id is not the table's, DataLost when a position is not in the log any more.
    """
    topic_ids = {tp.topic: found.topic_id.hex() for tp, found in ends.items()}
    for topic, topic_id in topic_ids.items():
        known = state.positions.get(topic)
        if known is not None and known.topic_id != topic_id:
            raise TopicRecreated(topic, known.topic_id, topic_id)
    available = [_available(state, tp, found, fail_on_data_loss) for tp, found in sorted(ends.items())]
    pending = sum(r.end - r.start for r in available)
    if max_records is not None and pending > max_records:
        available = [_share(r, max_records, pending) for r in available]
    return BatchPlan(
        ranges=tuple(r for r in available if r.start < r.end), topic_ids=topic_ids, pending=pending
    )


def _available(
    state: Manifest, tp: TopicPartition, found: OffsetRange, fail_on_data_loss: bool
) -> PlannedRange:
    position = state.position(*tp)
    start = found.start if position is None else position
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
