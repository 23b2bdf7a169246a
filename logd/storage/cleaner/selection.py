"""What of a log may be compacted now, and how much it needs it (Kafka's LogCleanerManager)."""

from __future__ import annotations

from typing import NamedTuple

from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage.segments import Segments


class Cleanable(NamedTuple):
    """A log as the cleaner sees it: clean up to `first_dirty`, to be cleaned up to `end`, a segment's base.

    `last_stable_offset` is the log's. `is_overdue`: a record waits for longer than max.compaction.lag.ms, so
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
        """The dirty part's share of both."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: TopicConfig) -> bool:
        """Whether the log should be compacted."""
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
    """The log's present state. `first_dirty` is the checkpoint's, -1 if it has none.

    Nothing at or above `upper_bound` (the last stable offset) is cleaned, nor the active segment, nor one
    with a record younger than min.compaction.lag.ms, nor one that a flush may still write to. May raise
    OSError and CorruptRecordBatch (timestamps are read).
    """
    row = segments.row
    if not log_start_offset <= first_dirty <= row[-1].base_offset:
        first_dirty = log_start_offset
    end = min(
        segments.index_of(upper_bound),
        # A flush takes along the segment of the last flushed record.
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
