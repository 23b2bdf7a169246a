"""Compacting a log, as its owner sees it: what may be cleaned, the cleaner's task, swapping its work in."""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka_client.errors import CorruptRecordBatch
from logd.config.setting import LONG_MAX
from logd.storage.cleaner.messages import Cleaned, Source, Task
from logd.storage.cleaner.selection import Cleanable, cleanable
from logd.storage.cleaner.swap import Swap
from logd.storage.jobs import Deletion
from logd.storage.log.reader import LogReader
from logd.storage.log.state import LogState
from logd.storage.segment import Segment

logger = logging.getLogger(__name__)


class CleanerLimits(NamedTuple):
    """The resources of one cleaner: bytes of memory for keys, bytes per read, bytes of I/O per second."""

    map_bytes: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024
    bytes_per_second: float = float("inf")


class Round(NamedTuple):
    """A task, and its segments by base offset, each with the size that it had."""

    task: Task
    segments: dict[int, tuple[Segment, int]]


class LogCompaction:
    """The part of a log that exchanges segments for cleaned ones."""

    __slots__ = ("_reader", "_state")

    def __init__(self, state: LogState, reader: LogReader) -> None:
        self._state = state
        self._reader = reader

    def cleanable(self, first_dirty: int, *, upper_bound: int, now_ms: int) -> Cleanable:
        """Return how much of the log is dirty; `first_dirty` is from the last `Done`, -1 for none.

        `upper_bound` is the last stable offset. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        try:
            return cleanable(
                state.segments,
                state.config,
                first_dirty,
                log_start_offset=state.log_start_offset,
                upper_bound=upper_bound,
                recovery_point=state.recovery_point,
                now_ms=now_ms,
            )
        except (OSError, CorruptRecordBatch) as error:
            raise state.failed("looking for what to compact", error) from error

    def start_compaction(
        self, cleanable: Cleanable, limits: CleanerLimits, now_ms: int, *, removable_to: int = LONG_MAX
    ) -> Round:
        """Return a task for the cleaner; pass each `Cleaned` that it reports to `start_swap`.

        Deletions and markers at or above `removable_to` stay. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        segments, config = state.segments, state.config
        row = segments.row[: segments.index_of(cleanable.end)]
        sources = [
            Source(segment.base_offset, segment.size, segments.end_of(index, cleanable.end))
            for index, segment in enumerate(row)
        ]
        producers = state.producers.producers.items()
        task = Task(
            directory=str(state.directory),
            sources=sources,
            first_dirty=cleanable.first_dirty,
            last_stable_offset=cleanable.last_stable_offset,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            aborted=list(self._reader.aborted(row[0].base_offset, cleanable.end)) if row else [],
            producers=[
                (number, producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
                for number, producer in producers
            ],
            removable_to=removable_to,
            record_bytes_max=config.max_decompressed_message_bytes,
            **limits._asdict(),
        )
        return Round(task, {segment.base_offset: (segment, segment.size) for segment in row})

    def save_removals(self) -> None:
        """Write `removals` to the disk, before any records are removed for which it was raised. Blocks.

        Do nothing if the log was deleted or its disk has failed, since the log can no longer change. Raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            return
        try:
            state.segments.active.place()
            state.removals.save(state.disk, state.directory)
        except FileNotFoundError:
            logger.debug("log %s went away while it was compacted", state.directory.name)
        except OSError as error:
            raise state.health.fail(f"writing the removal offset of {state.directory.name}", error) from error

    def start_swap(self, compaction: Round, cleaned: Cleaned) -> Swap:
        """Return the exchange of one group: `prepare` it in a thread, then call `finish_swap`."""
        state = self._state
        old = [compaction.segments[base] for base in cleaned.replaced]
        return Swap(state.disk, state.health, state.segments, old, cleaned)

    def finish_swap(self, swap: Swap) -> Deletion | None:
        """Exchange the segments, after `prepare`. Return the deletion of the old ones.

        Call `sync_names` of the swap in a thread, and run the deletion after its delay. Return None if the
        old segments have changed meanwhile: then call `discard` of the swap in a thread. Raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        state = self._state
        if state.health.failure is not None:
            raise state.health.error()
        if not swap.is_possible:
            return None
        try:
            paths = swap.apply()
        except OSError as error:
            raise state.failed("swapping in segments", error) from error
        except Exception as error:
            # Some files have their new names and some do not: a restart brings that to its end, nobody else.
            raise state.health.fail(f"swapping in segments of {state.directory.name}", error) from error
        paths += state.snapshots.drop_between({segment.base_offset for segment in state.segments.row})
        return Deletion(state.disk, paths, state.config.file_delete_delay_ms)
