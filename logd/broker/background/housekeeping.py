"""Work on a clock: retention, flushes, checkpoints, files to delete, producers to forget.

The loop decides and owns all state; fsync and unlink run in the thread pool, one round of each kind at a
time. Forcing logs to the disk is ``Flusher``'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING

from logd.broker.background.flusher import Flusher
from logd.broker.fetching.cold_reads import ColdReads
from logd.broker.work.periodic import PeriodicTasks, report
from logd.broker.work.pool import run_job
from logd.storage.open_files import OPEN_FILES, half_of_descriptors

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.partition.partition import Partition
    from logd.config.broker import BrokerConfig
    from logd.storage import Deletion, LogDirectory

FLUSH_CHECK_MS = 1_000
"""How often flush.ms is looked at; log.flush.scheduler.interval.ms makes it more often."""
PRODUCER_CHECK_MS = 600_000
PARTITIONS_PER_TURN = 50
"""Partitions looked at before clients get their turn again."""

DELETIONS_MAX = 10_000
"""Deletions that wait for file.delete.delay.ms. Of more the oldest is done at once: nobody finds its files
any more, and who has them open keeps them.
"""

log = logging.getLogger("logd.broker")


class Housekeeping:
    """Started once the broker's partitions are open; ``stop`` waits for the rounds that are under way."""

    def __init__(
        self,
        config: BrokerConfig,
        partitions: Mapping[TopicPartition, Partition],
        directories: Sequence[LogDirectory],
        executor: Executor,
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._directories = directories
        self._executor = executor
        self._now_ms = now_ms
        self._warmer = ColdReads(executor)
        self.flusher = Flusher(self.run, config.millstream_flush_interval_bytes)
        self._rounds = PeriodicTasks()
        self._deletions: dict[Deletion, asyncio.Handle] = {}

    def configure(self, config: BrokerConfig) -> None:
        """Take settings that were changed while the broker runs."""
        self._config = config

    def start(self) -> None:
        """Begin all rounds."""
        config = self._config
        OPEN_FILES.limit = config.millstream_open_files_max or half_of_descriptors()
        every = self._rounds.every
        every(config.log_retention_check_interval_ms, self.apply_retention)
        every(min(config.log_flush_scheduler_interval_ms, FLUSH_CHECK_MS), self.flush_due)
        every(config.millstream_open_files_idle_ms, self.close_idle_files)
        checkpoint_ms = min(
            config.log_flush_offset_checkpoint_interval_ms,
            config.log_flush_start_offset_checkpoint_interval_ms,
        )
        every(max(checkpoint_ms, 1), self.write_checkpoints)
        every(config.replica_high_watermark_checkpoint_interval_ms, self.write_high_watermarks)
        every(PRODUCER_CHECK_MS, self.expire_producers)
        self._rounds.whenever(self._flush_is_due, self.flush_all)

    async def stop(self) -> None:
        """End all rounds, once what they have running in the thread pool is done.

        Files whose deletion is still to come are deleted by the next start.
        """
        await self._rounds.stop()
        await self.flusher.stop()
        for handle in self._deletions.values():
            handle.cancel()
        self._deletions.clear()

    def deletions(self) -> dict[str, int]:
        """Return the counts of deletions that wait for their delay, their bound, and their files."""
        return {
            "deletions": len(self._deletions),
            "deletions_max": DELETIONS_MAX,
            "files": sum(len(deletion.paths) for deletion in self._deletions),
        }

    def discard(self, deletions: Sequence[Deletion]) -> None:
        """Run deletions in the thread pool: files are renamed away at once, and unlinked after a delay."""
        loop = asyncio.get_running_loop()
        for deletion in deletions:
            self._submit(deletion.hide)
            self._deletions[deletion] = loop.call_later(deletion.delay_ms / 1000, self._delete, deletion)
            if len(self._deletions) > DELETIONS_MAX:
                self._delete(next(iter(self._deletions)))

    async def hide(self, deletions: Sequence[Deletion], directories: Iterable[LogDirectory]) -> None:
        """Rename logs of these directories away in the thread pool, for good: others may take their names
        then. KafkaError.
        """

        def hide_all() -> None:
            for deletion in deletions:
                deletion.hide()
            for directory in directories:
                directory.sync()

        await self.run(hide_all)
        self.discard(deletions)

    def _delete(self, deletion: Deletion) -> None:
        self._deletions.pop(deletion).cancel()
        self._submit(deletion.run)

    def _submit(self, job: Callable[[], None]) -> None:
        self._executor.submit(job).add_done_callback(_report_failure)

    async def apply_retention(self) -> None:
        """Drop segments whose time or size is over."""
        now_ms = self._now_ms()
        for index, (key, partition) in enumerate(tuple(self._partitions.items())):
            if not partition.is_offline and self._partitions.get(key) is partition:
                try:
                    retain = partial(self._retain, key, partition, now_ms)
                    await self._warmer.until_resident(retain)
                except Exception as error:
                    report(f"retention of {partition}", error)
            if index % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _retain(self, key: TopicPartition, partition: Partition, now_ms: int) -> None:
        """Delete what retention no longer keeps of a partition.

        Raises NotResident, with nothing done, if a segment's timestamps have to be read from the disk first.
        """
        if self._partitions.get(key) is not partition:
            return  # deleted while that was read
        deletions = partition.apply_retention(now_ms)
        if deletions:
            self.discard(deletions)
            self.flusher.touched(partition)

    async def flush_due(self) -> None:
        """Force logs to disk whose flush.ms is due."""
        self.flusher.sync_due(self._now_ms())

    async def flush_all(self) -> None:
        """Force to disk what is not there yet, and note how far: a start after a crash reads from there."""
        if await self.flusher.flush_all():
            await self.write_checkpoints()

    async def _flush_is_due(self) -> None:
        """Wait until millstream.flush.interval.ms is over, or millstream.flush.interval.bytes are waiting."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.millstream_flush_interval_ms / 1000):
                await self.flusher.full()

    async def close_idle_files(self) -> None:
        """Close segments' files that nobody has used since the last time."""
        OPEN_FILES.sweep()

    async def write_checkpoints(self) -> None:
        """Write recovery points, log start offsets and high watermarks of every directory that is online."""
        for directory in self._directories:
            if directory.failure is None:
                await self.run(directory.start_checkpoint(self.high_watermarks()))

    async def write_high_watermarks(self) -> None:
        """Write those of the directories that have replicated partitions: of others recovery finds them."""
        directories = {
            partition.directory: None
            for partition in self._partitions.values()
            if partition.role is not None and not partition.is_offline
        }
        for directory in directories:
            if directory.failure is None:
                await self.run(directory.high_watermark_checkpoint(self.high_watermarks()))

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all partitions, in all log directories."""
        return {key: partition.high_watermark for key, partition in self._partitions.items()}

    async def expire_producers(self) -> None:
        """Forget idempotent producers that have been silent for producer.id.expiration.ms."""
        now_ms = self._now_ms()
        for index, partition in enumerate(tuple(self._partitions.values())):
            if index % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                await asyncio.sleep(0)
            partition.log.expire_producers(now_ms, self._config.producer_id_expiration_ms)

    async def run(self, job: Callable[[], None]) -> None:
        """Run a job that may block, in the thread pool."""
        await run_job(self._executor, job)


def _report_failure(done: Future[None]) -> None:
    """Report the failure of a job, in the thread that ran it."""
    if not done.cancelled() and (error := done.exception()) is not None:
        report("deleting files", error)
