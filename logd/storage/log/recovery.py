"""Recovery of a log's contents: the scan after an unclean stop, the producers, and the aborted transactions.

Nothing after the recovery point is trusted. Recovery reads every batch there, and checks its CRC and its
offsets. It rebuilds the indexes from there, and truncates the log at the first bad batch.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.control import parse_marker
from kafka_client.records.header import check_crc
from logd.storage.index.transaction import AbortedTransaction
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.names import log_fields
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.scan import scan_batches, scan_headers
from logd.storage.segment import RELATIVE_OFFSET_MAX, Segment
from logd.storage.segments import Segments

logger = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """The result of recovering a segment: bytes scanned, bytes truncated, end offset."""

    scanned: int
    lost: int
    end_offset: int


def recover_segment(
    segment: Segment, index_interval: int, epochs: LeaderEpochs, *, recovery_point: int = -1
) -> Recovered:
    """Check a segment batch by batch from the recovery point on, rebuild its indexes, and truncate it at
    damage.

    Leader epochs are learned from the batches if the checkpoint lacks them. May raise OSError.
    """
    end, due = segment.size, segment.base_offset
    if recovery_point > segment.base_offset and segment.rewind(recovery_point):
        if segment.size:  # else its first batch may begin before the log does
            due = recovery_point
    else:
        segment.reset()
    start = segment.size
    try:
        for _, header, batch in scan_batches(segment.file, start, end):
            check_crc(batch, 0, header)
            if header.base_offset < due or header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                raise CorruptRecordBatch(f"offset {header.base_offset} where {due} was due")
            epochs.correct(header.partition_leader_epoch, header.base_offset)
            segment.note(
                header.size, header.base_offset, header.last_offset, header.max_timestamp, index_interval
            )
            due = header.next_offset
    except CorruptRecordBatch as error:
        logger.warning(
            "%s: damaged at byte %d: %s",
            segment.file_name,
            segment.size,
            error,
            extra=log_fields(segment.directory),
        )
    lost = end - segment.size
    if lost:
        logger.warning(
            "%s: truncated by %d bytes behind offset %d",
            segment.file_name,
            lost,
            due,
            extra=log_fields(segment.directory),
        )
        segment.file.truncate(segment.size)
    segment.finish()
    return Recovered(end - start, lost, due)


def recover_producers(
    segments: Segments,
    snapshots: Snapshots,
    end_offset: int,
    now_ms: int,
    *,
    recovery_point: int,
    aborted: Collection[int],
) -> ProducerState:
    """Return the producers as of `end_offset`, and correct the transaction indexes.

    Index entries for markers after `recovery_point` are rebuilt from the batches, and so is a damaged index
    as a whole. `aborted` are the base offsets of the segments that have an index. May raise OSError.
    """
    damaged = next(
        (
            segment
            for segment in segments.row
            if segment.base_offset in aborted
            and segment.base_offset < recovery_point
            and not segment.txn_index.check()
        ),
        None,
    )
    if damaged is None:
        return rebuild_producers(segments, snapshots, end_offset, now_ms, indexed_to=recovery_point)
    base = damaged.base_offset
    logger.warning(
        "%s: its transaction index is damaged, building it again",
        damaged.file_name,
        extra=log_fields(damaged.directory),
    )
    behind = segments.row[segments.index_of(base) :]
    for segment in behind:
        segment.txn_index.rebuild()
    state = rebuild_producers(segments, snapshots, end_offset, now_ms, indexed_to=base)
    for segment in behind:
        segment.txn_index.rebuilt()
    return state


def rebuild_producers(
    segments: Segments, snapshots: Snapshots, end_offset: int, now_ms: int, *, indexed_to: int | None = None
) -> ProducerState:
    """Return the producers as of `end_offset`: the newest snapshot, and the batch headers after it.

    The transaction indexes are right up to `indexed_to` (`end_offset` if None). From there on they are
    rebuilt, which needs a snapshot from before `indexed_to`. Snapshots after `end_offset` are removed, and
    those at the starts of segments are taken again. Producers found in batches count as active at `now_ms`.
    May raise OSError.
    """
    if indexed_to is None:
        indexed_to = end_offset
    else:
        # Of what retention took before it was flushed, only the snapshot behind it is left.
        indexed_to = max(indexed_to, segments.row[0].base_offset)
        for segment in segments.row[segments.index_of(indexed_to) :]:
            segment.txn_index.truncate(indexed_to)
    snapshots.drop_after(end_offset)
    start, state = snapshots.newest(indexed_to)
    for index, segment in enumerate(segments.row):
        if segments.end_of(index, end_offset) <= start:
            continue
        if segment.base_offset > start and index:
            # Once the segments before are deleted, what they say of the producers is found nowhere else.
            snapshots.take(segment.base_offset, state)
        try:
            _replay(segment, state, start, indexed_to, now_ms)
        except CorruptRecordBatch as error:
            # Flushed data is damaged: its readers get an error, but the log must open.
            logger.warning(
                "%s: producers not known behind a damaged batch: %s",
                segment.file_name,
                error,
                extra=log_fields(segment.directory),
            )
    return state


def _replay(segment: Segment, state: ProducerState, start: int, indexed_to: int, now_ms: int) -> None:
    """Add a segment's batches from `start` on to `state`."""
    for position, header in scan_headers(segment.file, segment.index.lookup(start), segment.size):
        if header.producer_id < 0 or header.base_offset < start:
            continue
        if not header.is_control:
            state.record(header, header.base_offset, now_ms)
        elif header.count:  # else compaction has taken the marker, and the whole transaction before it
            marker = parse_marker(segment.file.read(position, header.size))
            offset = header.base_offset
            ended = state.record_marker(
                header.producer_id, header.producer_epoch, marker.coordinator_epoch, offset, now_ms
            )
            if ended is not None and not marker.commit and offset >= indexed_to:
                segment.txn_index.append(
                    AbortedTransaction(
                        header.producer_id, ended.first_offset, offset, ended.last_stable_offset
                    )
                )
