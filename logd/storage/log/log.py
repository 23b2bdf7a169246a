"""One partition's log: segments in a row, written at the end, read anywhere.

Appends and reads are synchronous and wait for no disk but the page cache. What has to wait (fsync, unlink)
is made here as a job (`jobs`) and run elsewhere. Each thing done to a log is a part's: appending `writer`'s,
what a leader sent `copier`'s, reading `reader`'s, flushing `flusher`'s, taking records away `shortening`'s,
compacting `compaction`'s. Opening and recovery are `loader`'s; who may append and read up to where (leader
epochs, high watermark) is the broker's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from logd.storage.checkpoints import encode_partition_metadata
from logd.storage.disk import Disk, write_atomically
from logd.storage.health import Health
from logd.storage.log.compaction import LogCompaction
from logd.storage.log.copier import LogCopier
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.reader import LogReader
from logd.storage.log.shortening import LogShortening
from logd.storage.log.state import LogState
from logd.storage.log.writer import LogWriter
from logd.storage.names import PARTITION_METADATA
from logd.storage.new_log import Placement


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Log(LogState):
    """One partition's log: its state, and the parts that work on it. Made by `LogDirectory`; one owner calls
    everything.

    `config` may be replaced while running. Everything below `recovery_point` is known to be on the disk, with
    its indexes and a producer snapshot near it; the records below `flusher.synced_offset` are, recovery finds
    them. After a failed write or fsync every call raises KafkaError(KAFKA_STORAGE_ERROR) until the directory
    is opened again. Callers go to the part itself: a call through the log would be one more for each append.
    """

    flusher: LogFlusher = field(init=False)
    writer: LogWriter = field(init=False)
    copier: LogCopier = field(init=False)
    reader: LogReader = field(init=False)
    shortening: LogShortening = field(init=False)
    compaction: LogCompaction = field(init=False)
    _placement: Placement | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        LogState.__post_init__(self)  # `super` knows nothing of the class that `slots` makes
        self._equip(self)

    def _equip(self, state: LogState) -> None:
        """Have parts that work on `state`."""
        self.flusher = LogFlusher(state)
        self.writer = LogWriter(state, self.flusher)
        self.copier = LogCopier(state, self.flusher)
        self.reader = LogReader(state)
        self.shortening = LogShortening(state, self.flusher)
        self.compaction = LogCompaction(state, self.reader)

    # Where it is

    @property
    def is_placed(self) -> bool:
        """Whether its directory is on the disk: a new log begins in memory."""
        return self._placement is None or self._placement.is_done

    def begin_in_memory(self, placement: Placement) -> None:
        """It is a new log: `place` puts it on the disk, or whoever uses its files first."""
        self.flusher.is_id_unsynced = self.topic_id is not None
        self._placement = placement
        self.segments.active.placed_by(placement)

    def place(self) -> None:
        """Make the files of a new log. May raise OSError. See `Placement`."""
        if self._placement is not None:
            self._placement.carry_out()

    def identify(self, topic_id: bytes) -> None:
        """Note whose log this is, left to a flush to be forced to the disk. May raise OSError."""
        data = encode_partition_metadata(topic_id)
        write_atomically(self.disk, self.directory / PARTITION_METADATA, data, sync=False)
        self.topic_id = topic_id
        self.flusher.is_id_unsynced = True
        self.flusher.names_changed()

    def relocate(self, directory: Path, disk: Disk, health: Health, *, unsynced_snapshots: set[int]) -> None:
        """All files are in another log directory now, byte for byte (`future`): go on there.

        Not while it is flushing. What was not flushed yet is flushed there. May raise OSError: the log is
        there all the same, and that directory has failed.
        """
        self.directory, self.disk, self.health = directory, disk, health
        self.flusher.relocated()
        self.epochs.dirty = True
        self.snapshots.relocate(disk, directory, unsynced_snapshots)
        self.segments.relocate(disk, directory)

    # Its producers

    def replicated_to(self, high_watermark: int) -> None:
        """Everything below `high_watermark` is committed: transactions whose marker it passed are stable."""
        self.producers.replicated_to(high_watermark)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers not heard of for `expiration_ms` (producer.id.expiration.ms); how many."""
        return self.producers.expire(now_ms, expiration_ms)

    # Letting go

    def close(self) -> None:
        """Flush, take a producer snapshot, let go of the files. Blocks.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self.health.failure is None:
            self.flusher.finish()
        self.release()

    def release(self) -> None:
        """Let go of the files as they are; slices given out stay readable."""
        self.segments.release()

    def retire(self) -> None:
        """The log is deleted: whoever still calls it gets KafkaError(KAFKA_STORAGE_ERROR), and no file is
        touched, since a log of the same name may have taken its place.
        """
        self.release()
        self.health = Health(self.directory)
        self.health.failure = f"{self.directory.name} was deleted"
        # Its parts refer back to it: memory would be held until the next garbage collection.
        self._equip(
            LogState(**{fact.name: getattr(self, fact.name) for fact in fields(LogState) if fact.init})
        )
