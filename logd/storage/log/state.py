"""What all parts of a log share: its segments, its offsets, and whether its disk is still trusted."""

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
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.removals import Removals
from logd.storage.segment import Segment
from logd.storage.segments import Segments

log = logging.getLogger(__name__)


class LogFiles(NamedTuple):
    """What is in a log's directory, for whoever copies it while the log serves.

    Segments and their indexes grow at their end. Those from `unsaved_from` on have indexes that a flush is
    still to write; of the `snapshots`, by offset, the latest may not be written yet.
    """

    segments: tuple[Segment, ...]
    unsaved_from: int
    snapshots: tuple[int, ...]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class LogState:
    """One partition's log as data: what its parts read and change.

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
        """What there is now."""
        row = tuple(self.segments.row)
        # A flush takes along the segment of the last flushed record.
        unsaved_from = self.segments.index_of(self.recovery_point - 1)
        return LogFiles(row, unsaved_from, tuple(self.snapshots.offsets))

    @property
    def first_unstable_offset(self) -> int | None:
        """Where readers of committed records are held back; None where no transaction is unstable.

        DeleteRecords may have taken the beginning of the transaction: then it is the log's.
        """
        offset = self.producers.first_unstable_offset
        return offset if offset is None or offset >= self.log_start_offset else self.log_start_offset

    @property
    def removal_offset(self) -> int:
        """Deletions and transaction markers before it may be gone: compaction has removed some."""
        return self.removals.offset

    # Epochs

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch written, -1 if none."""
        return self.epochs.latest

    @property
    def highest_epoch(self) -> int:
        """The largest leader epoch found, also if nothing that was written in it is left; -1 if none."""
        return self.epochs.highest

    def begin_epoch(self, epoch: int) -> None:
        """From the log end offset on it is in this leader epoch, larger than any there was."""
        self.epochs.begin(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) if unknown (KIP-101, KIP-279)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch the record at `offset` was written in, -1 if unknown."""
        return self.epochs.epoch_of(offset)

    # What to raise

    def failed(self, doing: str, error: OSError | CorruptRecordBatch) -> KafkaError:
        """Return the error to raise; a failing disk also takes the directory offline."""
        if isinstance(error, OSError):
            return self.health.fail(f"{doing} {self.directory.name}", error)
        text = f"{doing} {self.directory.name}: {error}"
        if text != self.damage:
            self.damage = text  # Readers may ask again and again.
            log.warning("%s", text)
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
