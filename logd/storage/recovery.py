"""Finding out what a log really holds: the scan after an unclean stop, and the producers' state.

Recovery believes nothing behind the recovery point: every batch is read, its CRC and its place in the order
are checked, the indexes are built again from there, and the log is cut at the first batch that does not hold.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from logd.errors import CorruptRecordBatch
from logd.records.header import check_crc
from logd.storage.epochs import LeaderEpochs
from logd.storage.producers import ProducerState
from logd.storage.scan import scan_batches, scan_headers
from logd.storage.segment import RELATIVE_OFFSET_MAX, Segment
from logd.storage.segments import Segments
from logd.storage.snapshots import Snapshots

logger = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """What recovering a segment came to: the bytes checked, and those of them that did not hold."""

    scanned: int
    lost: int


def recover_segment(
    segment: Segment, index_interval: int, epochs: LeaderEpochs, *, recovery_point: int = -1
) -> Recovered:
    """Check a segment batch by batch from the recovery point on, build the indexes again, cut what does not
    hold.

    Leader epochs newer than the checkpoint's are learned from the batches. May raise OSError.
    """
    end, due = segment.size, segment.base_offset
    if recovery_point > segment.base_offset and segment.rewind(recovery_point):
        due = recovery_point
    else:
        segment.reset()
    start = segment.size
    try:
        for _, header, batch in scan_batches(segment.file, start, end):
            check_crc(batch, 0, header)
            if header.base_offset < due or header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                raise CorruptRecordBatch(f"offset {header.base_offset} where {due} was due")
            epochs.assign(header.partition_leader_epoch, header.base_offset)
            segment.note(
                header.size, header.base_offset, header.last_offset, header.max_timestamp, index_interval
            )
            due = header.next_offset
    except CorruptRecordBatch as error:
        logger.warning("%s: damaged at byte %d: %s", segment.file_name, segment.size, error)
    lost = end - segment.size
    if lost:
        logger.warning("%s: cut off %d bytes behind offset %d", segment.file_name, lost, due)
        segment.file.truncate(segment.size)
    segment.finish()
    return Recovered(end - start, lost)


def rebuild_producers(
    segments: Segments, snapshots: Snapshots, end_offset: int, now_ms: int
) -> ProducerState:
    """The producers as of `end_offset`: the newest snapshot and the headers of the batches behind it.

    Snapshots behind `end_offset` are removed. Producers found in batches count as heard of at `now_ms`.
    May raise OSError.
    """
    start, state = snapshots.newest(end_offset)
    for index, segment in enumerate(segments.row):
        if segments.end_of(index, end_offset) <= start:
            continue
        try:
            for _, header in scan_headers(segment.file, segment.index.lookup(start), segment.size):
                if header.producer_id >= 0 and header.base_offset >= start and not header.is_control:
                    state.record(header, header.base_offset, now_ms)
        except CorruptRecordBatch as error:
            # Flushed data gone bad: whoever reads it is told, but the log must open.
            logger.warning("%s: producers not known behind a damaged batch: %s", segment.file_name, error)
    return state
