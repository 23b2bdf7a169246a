"""Which logs are compacted when, and what becomes of the cleaner's work.

The loop picks the dirtiest log, hands its cleaning to a child process and swaps the cleaned segments in, one
group at a time. The child reads and writes files only; every decision is taken here, where the log is owned.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from logd.broker.fetching.cold_reads import ColdReads
from logd.broker.work.periodic import PeriodicTasks, is_expected, report
from logd.broker.work.pool import run_job, to_its_end
from logd.config.setting import LONG_MAX
from logd.storage.names import CLEANED_SUFFIX

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.background.cleaner_process import CleanerDied, CleanerProcess
    from logd.broker.partition.partition import Partition
    from logd.config.broker import BrokerConfig
    from logd.storage import Deletion, Log, LogDirectory
    from logd.storage.cleaner.messages import Cleaned, Failed
    from logd.storage.cleaner.selection import Cleanable
    from logd.storage.log.compaction import CleanerLimits, Round

PARTITIONS_PER_TURN = 50
"""Partitions looked at before clients get their turn again."""
LOOK_AGAIN_S = 0.05
"""How often a cleaning under way is looked at by what cannot begin before it ends."""
IDLE_SECONDS = 60.0
"""A cleaner process with nothing to do for so long is ended."""
REST_MS_MIN = 100
"""A log that failed is left alone for log.cleaner.backoff.ms, for so long at least."""
DEATHS_MAX = 3
"""So many times may the cleaner die over a log before it is set aside."""

T = TypeVar("T")
logger = logging.getLogger("logd.broker")


class Due(NamedTuple):
    """A log to be compacted, and the work to be done."""

    partition: Partition
    log: Log
    round: Round


class Compaction:
    """Started once the broker's partitions are open. `config` gives the settings of the moment."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        partitions: Mapping[TopicPartition, Partition],
        directories: Sequence[LogDirectory],
        executor: Executor,
        discard: Callable[[Sequence[Deletion]], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._directories = directories
        self._executor = executor
        self._discard = discard
        self._now_ms = now_ms
        self._warmer = ColdReads(executor)
        self._first_dirty: dict[Log, int] = {}
        self._uncleanable: dict[Log, str] = {}
        self._deaths: dict[Log, int] = {}
        self._resting: dict[Log, float] = {}
        """Logs that failed, and the loop's time from which on they may be tried again."""
        self._paused: set[Log] = set()
        self._running: dict[asyncio.Task[None], Log] = {}
        self._working: dict[Log, tuple[Due, CleanerProcess]] = {}
        self._idle: list[CleanerProcess] = []
        self._wake = asyncio.Event()
        self._checkpointing = asyncio.Lock()
        self._rounds = PeriodicTasks()
        self._busy_until = asyncio.get_running_loop().time()

    def start(self) -> None:
        """Begin, if log.cleaner.enable says so."""
        if self._config().log_cleaner_enable:
            self._wake.set()
            self._rounds.whenever(self._look_is_due, self.look)

    def statistics(self) -> dict[str, int]:
        """Return counts of logs: being compacted with their bound, resting after a failure, uncleanable."""
        return {
            "running": len(self._running),
            "running_max": self._config().log_cleaner_threads,
            "resting": len(self._resting),
            "uncleanable": len(self._uncleanable),
        }

    async def stop(self) -> None:
        """End what is under way: cleaned segments that are not swapped in yet are lost."""
        await self._rounds.stop()
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(process.stop() for process in self._idle))

    @contextlib.asynccontextmanager
    async def paused(self, log: Log) -> AsyncIterator[None]:
        """Keep this log from being compacted meanwhile, so that it can move; a compaction under way is given
        up.
        """
        self._paused.add(log)
        self._cancel_unwanted()
        try:
            while log in self._running.values():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)
            yield
        finally:
            self._paused.discard(log)
            self._wake.set()

    async def cut(self, partition: Partition, offset: int) -> None:
        """Cut the partition's log, which has to be `paused`, at `offset`.

        Records after the cut count as dirty, in the checkpoint too once this returns. Raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        log, directory = partition.log, partition.directory
        offsets = self._first_dirty if log in self._first_dirty else None
        first_dirty = offsets[log] if offsets is not None else directory.cleaner_offsets.get(partition.tp, -1)
        if first_dirty <= offset:
            return
        if offsets is not None:
            offsets[log] = offset
        else:
            directory.cleaner_offsets[partition.tp] = offset
        await self._write_checkpoint(directory)

    # What is due

    async def _look_is_due(self) -> None:
        """Wait for log.cleaner.backoff.ms, or until something has changed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(self._config().log_cleaner_backoff_ms, 1) / 1000):
                await self._wake.wait()

    async def look(self) -> None:
        """Keep as many cleaners busy as log.cleaner.threads allows."""
        config, loop = self._config(), asyncio.get_running_loop()
        self._wake.clear()
        self._cancel_unwanted()
        self._resting = {log: until for log, until in self._resting.items() if until > loop.time()}
        while len(self._running) < config.log_cleaner_threads:
            due = await self._dirtiest(config)
            if due is None:
                break
            self._begin(due)
            self._busy_until = loop.time()
        if loop.time() - self._busy_until >= IDLE_SECONDS:
            while self._idle:
                await self._idle.pop().stop()

    async def _dirtiest(self, config: BrokerConfig) -> Due | None:
        """Return the due log with the largest dirty part, or None."""
        await self._forget_deleted()
        best, best_ratio = None, -1.0
        busy = set(self._running.values())
        now_ms = self._now_ms()
        for index, partition in enumerate(tuple(self._partitions.values())):
            if index % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                await asyncio.sleep(0)
            log = partition.log
            if (
                log in busy
                or log in self._resting
                or log in self._uncleanable
                or not self._wants(partition, log)
            ):
                continue
            try:
                cleanable = await self._warmer.until_resident(
                    partial(self._cleanable, partition, log, now_ms)
                )
            except Exception as error:
                self._cannot_look(log, error)
                continue
            if cleanable.is_due(partition.config) and cleanable.dirty_ratio > best_ratio:
                best, best_ratio = partition, cleanable.dirty_ratio
        if best is None:
            return None
        from logd.storage.log.compaction import CleanerLimits  # loaded with the log

        share = config.log_cleaner_threads
        limits = CleanerLimits(
            map_bytes=config.log_cleaner_dedupe_buffer_size // share,
            map_load_factor=config.log_cleaner_io_buffer_load_factor,
            buffer_bytes=config.log_cleaner_io_buffer_size // share,
            bytes_per_second=config.log_cleaner_io_max_bytes_per_second / share,
        )
        try:
            return await self._warmer.until_resident(partial(self._due, best, limits, now_ms))
        except Exception as error:
            self._cannot_look(best.log, error)
            self._wake.set()  # the others are to be looked at again
            return None

    def _cannot_look(self, log: Log, error: Exception) -> None:
        """Set aside a log whose need for compaction cannot be found out; the others are compacted."""
        if is_expected(error):
            self._set_aside(log, str(error))
        else:
            report(f"looking whether to compact {log.directory.name}", error)
            self._rest(log)

    def _due(self, partition: Partition, limits: CleanerLimits, now_ms: int) -> Due | None:
        log = partition.log
        if not self._wants(partition, log):
            return None
        cleanable = self._cleanable(partition, log, now_ms)
        role = partition.role
        removable_to = LONG_MAX if role is None else role.removable_to
        task = log.compaction.start_compaction(cleanable, limits, now_ms, removable_to=removable_to)
        return Due(partition, log, task)

    def _cleanable(self, partition: Partition, log: Log, now_ms: int) -> Cleanable:
        first_dirty = self._first_dirty.get(log)
        if first_dirty is None:
            # Taken out: a log of the same name made later is not clean.
            key = partition.tp
            first_dirty = self._first_dirty[log] = partition.directory.cleaner_offsets.pop(key, -1)
        return log.compaction.cleanable(first_dirty, upper_bound=partition.last_stable_offset, now_ms=now_ms)

    def _wants(self, partition: Partition, log: Log) -> bool:
        """Return True if the log is still the partition's, and is to be compacted."""
        return (
            partition.config.is_compacted
            and not partition.is_offline
            and partition.log is log
            and log not in self._paused
            and self._partitions.get(partition.tp) is partition
        )

    def _cancel_unwanted(self) -> None:
        """Have work left off whose log was deleted, is to move, or is not to be compacted any more."""
        for due, process in self._working.values():
            if not self._wants(due.partition, due.log):
                process.cancel()

    async def _forget_deleted(self) -> None:
        current = {partition.log for partition in self._partitions.values()}
        deleted = [log for log in self._first_dirty if log not in current]
        for facts in (self._first_dirty, self._uncleanable, self._deaths):
            for log in deleted:
                facts.pop(log, None)
        if deleted:
            for directory in self._directories:
                await self._write_checkpoint(directory)

    # Compacting one

    def _begin(self, due: Due) -> None:
        task = asyncio.create_task(self._compact(due))
        self._running[task] = due.log
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        log = self._running.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._rest(log)
            report(f"compacting {log.directory.name}", error)
        self._wake.set()

    async def _compact(self, due: Due) -> None:
        # A broker is ready before there is anything to compact, and most never have it.
        from logd.broker.background.cleaner_process import CleanerDied, CleanerProcess
        from logd.storage.cleaner.messages import Done, Failed

        log = due.log
        process = self._idle.pop() if self._idle else CleanerProcess()
        size = log.size
        ended: Done | Failed
        self._working[log] = due, process
        try:
            # What recovery reads again may have no gaps: only below the recovery point on the disk it knows
            # that compaction made them.
            await self._run(due.partition.directory.start_checkpoint())
            # A stop waits for an exchange that has begun: none is left for the next start to finish.
            ended = await process.clean(due.round.task, lambda cleaned: to_its_end(self._swap(due, cleaned)))
            self._idle.append(process)
        except CleanerDied as error:
            self._idle.append(process)
            self._died(log, error)
            ended = Failed(reason="cancelled", message=str(error))
        except BaseException:
            await to_its_end(process.stop())
            raise
        finally:
            del self._working[log]
        if isinstance(ended, Done):
            self._first_dirty[log] = ended.first_dirty
            await self._note_compacted(due, ended.first_dirty)
            self._deaths.pop(log, None)
            await self._write_checkpoint(due.partition.directory)
            records = f"{ended.records_kept} of {ended.records_read} records"
            logger.info(
                "compacted %s up to offset %d in %.1f s: %s stay, %d of %d bytes",
                log.tp,
                ended.first_dirty,
                ended.seconds,
                records,
                log.size,
                size,
            )
            return
        if self._wants(due.partition, log):
            self._failed(log, ended)
        await self._run(lambda: _remove_leftovers(log.directory))

    async def _swap(self, due: Due, cleaned: Cleaned) -> bool:
        """Put one group in; False if the log is not what it was."""
        swap = due.log.compaction.start_swap(due.round, cleaned)
        if not self._may_swap(due, cleaned):
            return False
        await self._note_removals(due, cleaned.removal_offset)
        if not await self._run(swap.prepare):
            return False
        deletion = None
        if self._may_swap(due, cleaned):
            if due.partition.role is not None:
                due.partition.role.removed(cleaned.removal_offset)
            deletion = due.log.compaction.finish_swap(swap)
        if deletion is None:
            is_gone = swap.is_gone
            await self._run(swap.discard)
            return is_gone and self._wants(due.partition, due.log)
        await self._run(swap.sync_names)
        self._discard([deletion])
        return True

    def _may_swap(self, due: Due, cleaned: Cleaned) -> bool:
        """Return True unless the log is not wanted, or a replica that has been copied since the round began
        needs what was removed in it: the next round keeps that.
        """
        if not self._wants(due.partition, due.log):
            return False
        role = due.partition.role
        return role is None or cleaned.removal_offset <= role.removable_to

    async def _note_removals(self, due: Due, offset: int) -> None:
        """Note the highest offset of the markers that compaction is about to remove, before it does.

        The note is saved if there are other replicas, which ask for it.
        """
        removals = due.log.removals
        if offset > removals.offset:
            removals.raise_to(offset)
            if due.partition.role is not None:
                await self._run(due.log.compaction.save_removals)

    async def _note_compacted(self, due: Due, offset: int) -> None:
        """Keep up to where this broker has compacted the log, and noted what it removed."""
        due.log.removals.compacted_to = offset
        if due.partition.role is not None:
            await self._run(due.log.compaction.save_removals)

    def _failed(self, log: Log, failed: Failed) -> None:
        if failed.reason in ("corrupt", "disk"):
            self._set_aside(log, failed.message)
        elif failed.reason == "full":
            logger.warning("no room to compact %s, tried again later: %s", log.tp, failed.message)
        self._rest(log)

    def _died(self, log: Log, error: CleanerDied) -> None:
        logger.error("compacting %s: %s; it is started again", log.tp, error)
        self._rest(log)
        self._deaths[log] = self._deaths.get(log, 0) + 1
        if self._deaths[log] >= DEATHS_MAX:
            self._set_aside(log, f"{error}, {DEATHS_MAX} times")

    def _rest(self, log: Log) -> None:
        backoff = max(self._config().log_cleaner_backoff_ms, REST_MS_MIN)
        self._resting[log] = asyncio.get_running_loop().time() + backoff / 1000

    def _set_aside(self, log: Log, reason: str) -> None:
        self._uncleanable[log] = reason
        logger.error("%s is not compacted any more until a restart: %s", log.tp, reason)

    async def _write_checkpoint(self, directory: LogDirectory) -> None:
        """Note how far the directory's logs are clean."""
        async with self._checkpointing:
            if directory.failure is not None:
                return
            clean = {
                partition.tp: offset
                for partition in self._partitions.values()
                if partition.directory is directory
                and (offset := self._first_dirty.get(partition.log, -1)) >= 0
            }
            await self._run(directory.cleaner_checkpoint({**directory.cleaner_offsets, **clean}))

    async def _run(self, job: Callable[[], T]) -> T:
        return await run_job(self._executor, job)


def _remove_leftovers(directory: Path) -> None:
    """Remove what was written and not swapped in."""
    for path in directory.glob("*" + CLEANED_SUFFIX):
        path.unlink(missing_ok=True)
