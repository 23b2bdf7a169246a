"""Splits ranges of offsets into tasks, as Spark's KafkaOffsetRangeCalculator does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kafka_client import TopicPartition
from plugins.spark.log_range import LogRange


def split_ranges(
    ranges: Iterable[LogRange], min_partitions: int | None = None, max_records: int | None = None
) -> list[LogRange]:
    """Split ranges so that none has more than `max_records`, and there are about `min_partitions`.

    Empty ranges are left out. Ranges that are too small to be split keep a task each; the others share the
    remaining tasks by their size (SPARK-36576, SPARK-49259). Rounding may give a few tasks more or fewer.
    """
    pieces = [r for r in ranges if r.start < r.end]
    if max_records is not None:
        pieces = [piece for r in pieces for piece in _cut(r, -(-_size(r) // max_records))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    return _share_tasks(pieces, min_partitions)


def _share_tasks(pieces: Sequence[LogRange], tasks: int) -> list[LogRange]:
    total = sum(map(_size, pieces))
    small = [r for r in pieces if _task_count(_size(r), total, tasks) == 1]
    # Spark tells small ranges by their partition: all pieces of that partition stay whole.
    whole = {_partition(r) for r in small}
    rest = total - sum(map(_size, small))
    rest_tasks = max(tasks - len(small), 1)
    return [
        piece
        for r in pieces
        for piece in _cut(r, 1 if _partition(r) in whole else _task_count(_size(r), rest, rest_tasks))
    ]


def _task_count(size: int, total: int, tasks: int) -> int:
    """Return a range's share of the tasks, halves rounded up as by Java's Math.round."""
    return max(math.floor(size / total * tasks + 0.5), 1)


def _cut(whole: LogRange, count: int) -> list[LogRange]:
    """Cut a range into parts; the later ones are larger by one if it does not divide evenly."""
    parts = min(count, _size(whole))
    pieces, start, remaining = [], whole.start, _size(whole)
    for part in range(parts):
        size = remaining // (parts - part)
        pieces.append(whole._replace(start=start, end=start + size))
        start += size
        remaining -= size
    return pieces


def _size(r: LogRange) -> int:
    return r.end - r.start


def _partition(r: LogRange) -> TopicPartition:
    return TopicPartition(r.topic, r.partition)
