"""Compacting a log, as its owner sees it: what may be cleaned, the cleaner's task, swapping its work in."""

from __future__ import annotations

from typing import NamedTuple

from logd.errors import CorruptRecordBatch
from logd.storage.cleaner.messages import Cleaned, Source, Task
from logd.storage.cleaner.selection import Cleanable, cleanable
from logd.storage.cleaner.swap import Swap
from logd.storage.jobs import Deletion
from logd.storage.log.reader import LogReader
from logd.storage.segment import Segment


class CleanerLimits(NamedTuple):
    """What one cleaner may use: bytes of memory for keys, bytes read at a time, input and output a second."""

    map_bytes: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024
    bytes_per_second: float = float("inf")


class Round(NamedTuple):
    """A task, and the segments it is about, with the size each had."""

    task: Task
    segments: dict[int, tuple[Segment, int]]


class LogCompaction(LogReader):
    """The part of a log that exchanges segments for cleaned ones."""

    def cleanable(self, first_dirty: int, *, upper_bound: int, now_ms: int) -> Cleanable:
        """How much of the log is dirty; `first_dirty` is what the last `Done` said, -1 for none.

        `upper_bound` is the last stable offset. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        try:
            return cleanable(
                self._segments,
                self.config,
                first_dirty,
                log_start_offset=self.log_start_offset,
                upper_bound=upper_bound,
                recovery_point=self.recovery_point,
                now_ms=now_ms,
            )
        except (OSError, CorruptRecordBatch) as error:
            raise self._failed("looking for what to compact", error) from error

    def start_compaction(self, found: Cleanable, limits: CleanerLimits, now_ms: int) -> Round:
        """A task for the cleaner; every `Cleaned` it reports goes to `start_swap`.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        segments, config = self._segments, self.config
        row = segments.row[: segments.index_of(found.end)]
        sources = [
            Source(segment.base_offset, segment.size, segments.end_of(index, found.end))
            for index, segment in enumerate(row)
        ]
        producers = self.producers.producers.items()
        task = Task(
            folder=str(self.folder),
            sources=sources,
            first_dirty=found.first_dirty,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            aborted=list(self.aborted(row[0].base_offset, found.end)) if row else [],
            producers=[
                (number, known.batches[-1].last_offset if known.batches else -1, known.epoch)
                for number, known in producers
            ],
            **limits._asdict(),
        )
        return Round(task, {segment.base_offset: (segment, segment.size) for segment in row})

    def start_swap(self, compaction: Round, cleaned: Cleaned) -> Swap:
        """The exchange of one group: `prepare` it in a thread, then call `finish_swap`."""
        old = [compaction.segments[base] for base in cleaned.replaced]
        return Swap(self._disk, self._health, self._segments, old, cleaned)

    def finish_swap(self, swap: Swap) -> Deletion | None:
        """Exchange the segments, after `prepare`; None if the old ones are no longer what they were:
        `discard` it in a thread then. Else `settle` it in a thread, and run the deletion after its delay.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        if self._health.failure is not None:
            raise self._health.error()
        if not swap.is_possible:
            return None
        try:
            paths = swap.apply()
        except OSError as error:
            raise self._failed("swapping in segments", error) from error
        paths += self._snapshots.drop_between({segment.base_offset for segment in self._segments.row})
        return Deletion(self._disk, paths, self.config.file_delete_delay_ms)
