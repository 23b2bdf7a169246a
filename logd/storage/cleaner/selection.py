"""The choice of logs to compact: the part of a log that may be compacted now, and its priority.

It does what Kafka's LogCleanerManager does.
"""

from __future__ import annotations

from typing import NamedTuple

from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage.segments import Segments


class Cleanable(NamedTuple):
    """The cleaner's view of a log: clean up to `first_dirty`, to be cleaned up to `end`, a segment's base
    offset.

    `last_stable_offset` is the log's. `is_overdue`: a record has waited longer than max.compaction.lag.ms, so
    the dirty ratio does not matter.
    """

    first_dirty: int
    end: int
    last_stable_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """The dirty part's share of all bytes up to `end`."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: TopicConfig) -> bool:
        """Return True if the log should be compacted."""
        return self.dirty_bytes > 0 and (
            self.is_overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio
        )


def cleanable(
    segments: Segments,
    config: TopicConfig,
    first_dirty: int,
    *,
    log_start_offset: int,
    upper_bound: int,
    recovery_point: int,
    now_ms: int,
) -> Cleanable:
    """Return the log's current state. `first_dirty` is the checkpoint's, -1 if there is none.

    Not cleaned are: offsets from `upper_bound` (the last stable offset) on, the active segment, segments with
    a record younger than min.compaction.lag.ms, and segments to which a flush may still write. May raise
    OSError and CorruptRecordBatch (timestamps are read).
    """
    row = segments.row
    if not log_start_offset <= first_dirty <= row[-1].base_offset:
        first_dirty = log_start_offset
    end = min(
        segments.index_of(upper_bound),
        # The next flush includes the segment of the last flushed record.
        segments.index_of(recovery_point - 1),
        len(row) - 1,
    )
    begin = segments.index_of(first_dirty)
    if config.min_compaction_lag_ms > 0:
        young_after = now_ms - config.min_compaction_lag_ms
        for index in range(begin, end):
            if row[index].largest_timestamp > young_after:
                end = index
                break
    return Cleanable(
        first_dirty,
        row[end].base_offset,
        upper_bound,
        sum(segment.size for segment in row[:begin]),
        sum(segment.size for segment in row[begin:end]),
        _is_overdue(segments, config, begin, end, now_ms),
    )


def _is_overdue(segments: Segments, config: TopicConfig, begin: int, end: int, now_ms: int) -> bool:
    lag = config.max_compaction_lag_ms
    if lag == LONG_MAX:
        return False
    firsts = (segment.first_timestamp for segment in segments.row[begin:end])
    return any(0 < first < now_ms - lag for first in firsts)
