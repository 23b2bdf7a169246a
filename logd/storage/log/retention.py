"""Which segments a log no longer has to keep."""

from __future__ import annotations

from logd.config.topic import TopicConfig
from logd.storage.segment import Segment
from logd.storage.segments import Segments


def removable(
    segments: Segments,
    config: TopicConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    upper_bound: int,
    now_ms: int,
) -> int:
    """Return how many of the oldest segments may go, by retention.ms, retention.bytes or the log start
    offset.

    Time counts from the segment's largest record timestamp. No segment with records at or above `upper_bound`
    (the high watermark) goes, nor an empty last segment. A last segment that may go has to be rolled first.
    May raise OSError (timestamps of old segments are read from their time index).
    """
    deletes = "delete" in config.cleanup_policy
    keep_ms = config.retention_ms if deletes else -1
    keep_bytes = config.retention_bytes if deletes else -1
    excess = segments.size - keep_bytes
    count = 0
    for segment in segments.row:
        end = segments.end_of(count, log_end_offset)
        if end > upper_bound or (segment is segments.active and not segment.size):
            break
        if not (
            end <= log_start_offset
            or (keep_ms >= 0 and now_ms - _age_from(segment) > keep_ms)
            or (keep_bytes >= 0 and excess >= segment.size)
        ):
            break
        excess -= segment.size
        count += 1
    return count


def _age_from(segment: Segment) -> int:
    """Return the largest timestamp (ms), or the file's time for records without timestamps."""
    timestamp = segment.largest_timestamp
    return timestamp if timestamp >= 0 else segment.created_ms
