"""The start of a log's next segment: when it is due, and how long the current one stays open."""

from __future__ import annotations

import zlib

from logd.config.topic import TopicConfig
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.state import LogState
from logd.storage.preallocation import preallocate
from logd.storage.segment import Segment


def segment_for(
    state: LogState, flusher: LogFlusher, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> Segment:
    """Return the active segment, after rolling it if it is full or too old for a batch of `size` bytes.

    May raise OSError and CorruptRecordBatch.
    """
    segment, config = state.segments.active, state.config
    if segment.size and (
        segment.size + size > config.segment_bytes
        or segment.open_for(max_timestamp, now_ms) > open_ms_max(segment, config)
        or not segment.fits(last_offset, config.index_interval_bytes, config.segment_index_bytes)
    ):
        segment = roll(state, flusher, now_ms)
    if config.preallocate and not segment.size:
        preallocate(segment.file, config.segment_bytes)
    return segment


def roll(state: LogState, flusher: LogFlusher, now_ms: int) -> Segment:
    """Begin a new segment at the log end offset. May raise OSError and CorruptRecordBatch."""
    segments = state.segments
    if state.config.preallocate:
        segments.active.file.truncate(segments.active.size)  # frees the unused part
    state.snapshots.take(state.log_end_offset, state.producers)
    flusher.rolled()
    return segments.add(state.log_end_offset, now_ms)


def open_ms_max(segment: Segment, config: TopicConfig) -> int:
    """Return how long the segment takes batches (ms), by segment.ms.

    A compacted log rolls by max.compaction.lag.ms if that is less, since no active segment is compacted.
    """
    limit = config.segment_ms
    if config.max_compaction_lag_ms < limit and config.is_compacted:
        limit = config.max_compaction_lag_ms
    if config.segment_jitter_ms:
        limit -= roll_jitter_ms(segment, config)
    return limit


def roll_jitter_ms(segment: Segment, config: TopicConfig) -> int:
    """Return the time taken off segment.ms, up to segment.jitter.ms: random, but fixed for each segment."""
    chance = zlib.crc32(segment.file_name.encode())
    return chance % min(config.segment_jitter_ms, config.segment_ms)
