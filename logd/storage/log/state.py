"""What all parts of a log share: its segments, its offsets, and whether its disk is still trusted."""

from __future__ import annotations

from pathlib import Path

from logd.config.topic import TopicConfig
from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError, OffsetOutOfRange, error_for
from logd.storage.disk import Disk
from logd.storage.health import Health
from logd.storage.log.epochs import LeaderEpochs
from logd.storage.producers.snapshots import Snapshots
from logd.storage.producers.state import ProducerState
from logd.storage.segments import Segments


class LogState:
    """One partition's log as data.

    log start offset ≤ log end offset; recovery point ≤ log end offset
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        folder: Path,
        config: TopicConfig,
        *,
        disk: Disk,
        health: Health,
        segments: Segments,
        snapshots: Snapshots,
        producers: ProducerState,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        topic_id: bytes | None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.folder = folder
        self.config = config
        self.topic_id = topic_id
        self.producers = producers
        self.epochs = epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self._segments = segments
        self._disk = disk
        self._health = health
        self._snapshots = snapshots

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._segments.size

    @property
    def first_unstable_offset(self) -> int | None:
        """Where readers of committed records are held back; None where no transaction is unstable.

        DeleteRecords may have taken the beginning of the transaction: then it is the log's.
        """
        offset = self.producers.first_unstable_offset
        return offset if offset is None or offset >= self.log_start_offset else self.log_start_offset

    # Epochs

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch written, -1 if none."""
        return self.epochs.latest

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) if unknown (KIP-101, KIP-279)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch the record at `offset` was written in, -1 if unknown."""
        return self.epochs.epoch_of(offset)

    # What to raise

    def _failed(self, doing: str, error: OSError | CorruptRecordBatch) -> KafkaError:
        """What to raise: a failing disk takes the folder offline, a damaged batch concerns this log alone."""
        if isinstance(error, OSError):
            return self._health.fail(f"{doing} {self.folder.name}", error)
        return error_for(ErrorCode.CORRUPT_MESSAGE, f"{doing} {self.folder.name}: {error}")

    def _out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            message=f"offset {offset} is outside {self.log_start_offset}…{self.log_end_offset}",
            topic=self.topic,
            partition=self.partition,
            offset=offset,
            start=self.log_start_offset,
            end=self.log_end_offset,
        )
