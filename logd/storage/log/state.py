"""The state that all parts of a log share: segments, offsets, and whether the disk is still trusted."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError, OffsetOutOfRange, error_for
from kafka_client.topic_partition import TopicPartition
from logd.config.topic import TopicConfig
from logd.storage.disk import Disk
from logd.storage.health import Health
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.names import log_fields
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.removals import Removals
from logd.storage.segment import Segment
from logd.storage.segments import Segments

log = logging.getLogger(__name__)


class LogFiles(NamedTuple):
    """The files in a log's directory, for a copy that is made while the log serves.

    Segments and their indexes grow at their end. A flush still has to write the indexes of the segments from
    `unsaved_from` on. The latest of the `snapshots`, by offset, may not be written yet.
    """

    segments: tuple[Segment, ...]
    unsaved_from: int
    snapshots: tuple[int, ...]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LogState:
    """The state of a partition's log, which the log's parts read and change.

    log start offset ≤ log end offset; recovery point ≤ log end offset
    """

    topic: str
    partition: int
    directory: Path
    config: TopicConfig
    disk: Disk
    health: Health
    segments: Segments
    snapshots: Snapshots
    producers: ProducerState
    epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    topic_id: bytes | None
    removals: Removals = field(default_factory=Removals)
    damage: str = ""
    """The text that was logged last about a batch that cannot be read."""
    tp: TopicPartition = field(init=False)

    def __post_init__(self) -> None:
        self.tp = TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.segments.size

    @property
    def files(self) -> LogFiles:
        """The log's files as they are now."""
        row = tuple(self.segments.row)
        # A flush takes along the segment of the last flushed record.
        unsaved_from = self.segments.index_of(self.recovery_point - 1)
        return LogFiles(row, unsaved_from, tuple(self.snapshots.offsets))

    @property
    def first_unstable_offset(self) -> int | None:
        """The offset up to which readers of committed records may read; None if no transaction is unstable.

        DeleteRecords may have removed the beginning of the transaction: then it is the log start offset.
        """
        offset = self.producers.first_unstable_offset
        return offset if offset is None or offset >= self.log_start_offset else self.log_start_offset

    @property
    def removal_offset(self) -> int:
        """The offset before which compaction may have removed deletions and transaction markers."""
        return self.removals.offset

    # Epochs

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch written, -1 if there is none."""
        return self.epochs.latest

    @property
    def highest_epoch(self) -> int:
        """The largest leader epoch ever added, even if no record of it is left; -1 if there is none."""
        return self.epochs.highest

    def begin_epoch(self, epoch: int) -> None:
        """Begin a leader epoch at the log end offset; it must be larger than any before."""
        self.epochs.begin(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as OffsetForLeaderEpoch has them; (-1, -1) if unknown (KIP-101,
        KIP-279).
        """
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which the record at `offset` was written, or -1 if it is unknown."""
        return self.epochs.epoch_of(offset)

    # What to raise

    def failed(self, doing: str, error: OSError | CorruptRecordBatch) -> KafkaError:
        """Return the error to raise; a failing disk also takes the directory offline."""
        if isinstance(error, OSError):
            return self.health.fail(f"{doing} {self.directory.name}", error)
        text = f"{doing} {self.directory.name}: {error}"
        if text != self.damage:
            self.damage = text  # Readers may ask again and again.
            log.warning("%s", text, extra=log_fields(self.directory))
        return error_for(ErrorCode.CORRUPT_MESSAGE, text)

    def out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            message=f"offset {offset} is outside {self.log_start_offset}…{self.log_end_offset}",
            topic=self.topic,
            partition=self.partition,
            offset=offset,
            start=self.log_start_offset,
            end=self.log_end_offset,
        )
