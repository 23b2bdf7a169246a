"""A partition's log: segments in a row, written at the end, read anywhere.

Appends and reads are synchronous and wait for no disk but the page cache. Slow work (fsync, unlink) is
returned as a job (`jobs`) and run elsewhere. Each operation belongs to a part: appending to `writer`,
appending a leader's batches to `copier`, reading to `reader`, flushing to `flusher`, removing records to
`shortening`, compacting to `compaction`. `loader` opens and recovers logs. The broker decides who may append,
and up to where readers may read (leader epochs, high watermark).
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
    """A partition's log: its state, and the parts that work on it. `LogDirectory` creates it; one owner makes
    all calls.

    `config` may be replaced while running. Everything below `recovery_point` is known to be on the disk, with
    its indexes and a producer snapshot near it. The records below `flusher.synced_offset` are on the disk
    too, and recovery finds them. After a failed write or fsync every call raises
    KafkaError(KAFKA_STORAGE_ERROR) until the directory is opened again. Callers use the part itself, which
    saves a call for each append.
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
        self._create_parts(self)

    def _create_parts(self, state: LogState) -> None:
        """Create the parts, to work on `state`."""
        self.flusher = LogFlusher(state)
        self.writer = LogWriter(state, self.flusher)
        self.copier = LogCopier(state, self.flusher)
        self.reader = LogReader(state)
        self.shortening = LogShortening(state, self.flusher)
        self.compaction = LogCompaction(state, self.reader)

    # Where it is

    @property
    def is_placed(self) -> bool:
        """True if the log's directory is on the disk: a new log begins in memory."""
        return self._placement is None or self._placement.is_done

    def begin_in_memory(self, placement: Placement) -> None:
        """Begin as a new log, which is put on the disk by `place` or by the first use of its files."""
        self.flusher.is_id_unsynced = self.topic_id is not None
        self._placement = placement
        self.segments.active.placed_by(placement)

    def place(self) -> None:
        """Create the files of a new log. May raise OSError. See `Placement`."""
        if self._placement is not None:
            self._placement.carry_out()

    def identify(self, topic_id: bytes) -> None:
        """Write the log's topic id; the next flush syncs it. May raise OSError."""
        data = encode_partition_metadata(topic_id)
        write_atomically(self.disk, self.directory / PARTITION_METADATA, data, sync=False)
        self.topic_id = topic_id
        self.flusher.is_id_unsynced = True
        self.flusher.names_changed()

    def relocate(self, directory: Path, disk: Disk, health: Health, *, unsynced_snapshots: set[int]) -> None:
        """Continue in another log directory, where all files have been copied byte for byte (`future`).

        Not to be called during a flush. What was not flushed yet is flushed there. May raise OSError; then
        the log is there all the same, and that directory has failed.
        """
        self.directory, self.disk, self.health = directory, disk, health
        self.flusher.relocated()
        self.epochs.dirty = True
        self.snapshots.relocate(disk, directory, unsynced_snapshots)
        self.segments.relocate(disk, directory)

    # Its producers

    def replicated_to(self, high_watermark: int) -> None:
        """Note that everything below `high_watermark` is committed; transactions with their marker there are
        stable.
        """
        self.producers.replicated_to(high_watermark)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Drop producers that were idle for `expiration_ms` (producer.id.expiration.ms). Return how many."""
        return self.producers.expire(now_ms, expiration_ms)

    # Closing

    def close(self) -> None:
        """Flush, take a producer snapshot, and close the files. Blocks.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self.health.failure is None:
            self.flusher.finish()
        self.release()

    def release(self) -> None:
        """Close the files as they are; slices that were handed out stay readable."""
        self.segments.release()

    def retire(self) -> None:
        """Close a deleted log: further calls raise KafkaError(KAFKA_STORAGE_ERROR).

        They touch no file, since a new log of the same name may have taken its place.
        """
        self.release()
        self.health = Health(self.directory)
        self.health.failure = f"{self.directory.name} was deleted"
        # Its parts refer back to it: memory would be held until the next garbage collection.
        self._create_parts(
            LogState(**{fact.name: getattr(self, fact.name) for fact in fields(LogState) if fact.init})
        )
