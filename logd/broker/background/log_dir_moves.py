"""Partitions on their way to another log directory (AlterReplicaLogDirs, KIP-113), while they serve.

A move is remembered by its ``-future`` directory: what a crash interrupts, the next start begins again. The
copy is `logd.storage.future_log`'s; here is who moves when, and how fast.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.work.periodic import is_expected, report
from logd.broker.work.pool import run_job
from logd.storage.checkpoints import read_partition_metadata
from logd.storage.errors import NoRoom
from logd.storage.names import PARTITION_METADATA

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.background.compaction import Compaction
    from logd.broker.background.flusher import Flusher
    from logd.broker.log_dirs.log_dirs import LogDirs
    from logd.broker.partition.partition import Partition
    from logd.config.broker import BrokerConfig
    from logd.storage import Deletion, LogDirectory
    from logd.storage.future_log import FutureLog

COPY_STEP_BYTES = 4 * 1024 * 1024
"""Copied by one job in the thread pool; between two the move can be slowed down or called off."""
LOOK_AGAIN_S = 0.25
"""A throttled move looks this often whether the rate has changed or its topic was deleted."""
LAST_ROUNDS_MAX = 10
"""How often a synced copy tries to catch up before it has to be synced again."""
ROUND_PAUSE_S = 0.01
"""Between two rounds where the copy is near the end of the log, but not near enough."""

Result = TypeVar("Result")

log = logging.getLogger("logd.broker")


class LogDirMoves:
    """``futures`` are the moves under way or waiting for their turn, by partition.

    ``config`` is asked for what can change while running; ``discard`` has files deleted.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        partitions: Mapping[TopicPartition, Partition],
        executor: Executor,
        *,
        config: Callable[[], BrokerConfig],
        discard: Callable[[Sequence[Deletion]], None],
        flusher: Flusher,
        compaction: Compaction,
    ) -> None:
        self.futures: dict[TopicPartition, FutureLog] = {}
        self._log_dirs = log_dirs
        self._partitions = partitions
        self._executor = executor
        self._config = config
        self._discard = discard
        self._flusher = flusher
        self._compaction = compaction
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._interrupted: dict[TopicPartition, asyncio.Event] = {}
        threads = config().num_replica_alter_log_dirs_threads or len(log_dirs.paths)
        self._turns = asyncio.Semaphore(threads)
        self._threads = threads

    def statistics(self) -> dict[str, int]:
        """Return the count of partitions that move to another directory, and how many do at a time."""
        return {"moves": len(self._tasks), "running_max": self._threads}

    def resume(self) -> None:
        """Begin again what the last stop interrupted; call it once, when all partitions are open."""
        for directory in self._log_dirs.online:
            for key, paths in directory.futures.items():
                partition = self._partitions.get(key)
                if partition is None and not self._log_dirs.is_complete:
                    continue  # the directory with its log may be offline, and this copy all that is left
                if (
                    partition is not None
                    and partition.directory is not directory
                    and _is_of(partition, paths)
                ):
                    self._begin_again(partition, directory)
                from logd.storage.future_log import discard_future

                for path in paths:  # after a crash a copy may be incomplete
                    self._discard([discard_future(directory, path)])

    def _begin_again(self, partition: Partition, directory: LogDirectory) -> None:
        future = self._new_future(partition, directory)
        try:
            future.create()
        except (KafkaError, NoRoom) as error:
            del self.futures[partition.tp]
            log.error("%s stays in %s: %s", partition.tp, partition.directory.path, error)
        else:
            log.info("%s: its move to %s begins again", partition.tp, directory.path)
            self._begin(partition, future)

    async def alter(self, partition: Partition, directory: LogDirectory) -> None:
        """Move a partition to a directory. If it is in that directory already, call off the move under way.

        Returns once a crash would not forget it. KafkaError: INVALID_TOPIC_EXCEPTION, KAFKA_STORAGE_ERROR.
        """
        key = partition.tp
        await self._until_not_interrupted(key)
        future = self.futures.get(key)
        if future is not None and future.target is directory:
            return
        await self._call_off(key)
        await self._until_not_interrupted(key)
        if partition.directory is directory or key in self.futures:
            return
        future = self._new_future(partition, directory)
        try:
            await self._run(future.create)
        except NoRoom as error:
            self._abandon(future)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        except BaseException:
            self._forget(key, future)
            raise
        if self.futures.get(key) is future:
            self._begin(partition, future)
        else:  # another request has changed the directory meanwhile
            self._abandon(future)

    @contextlib.asynccontextmanager
    async def interrupted(self, partition: Partition) -> AsyncIterator[None]:
        """Stop the partition's move meanwhile; the move starts over when the context ends."""
        key = partition.tp
        await self._until_not_interrupted(key)
        released = self._interrupted[key] = asyncio.Event()
        future = self.futures.get(key)
        try:
            await self._call_off(key)
            yield
        finally:
            del self._interrupted[key]
            released.set()
            if future is not None and not future.is_done:
                await self._move_again(partition, future.target)

    async def _until_not_interrupted(self, key: TopicPartition) -> None:
        while (released := self._interrupted.get(key)) is not None:
            await released.wait()

    async def _move_again(self, partition: Partition, directory: LogDirectory) -> None:
        if self._partitions.get(partition.tp) is not partition or directory.failure is not None:
            return
        try:
            await self.alter(partition, directory)
        except KafkaError as error:
            log.error("%s stays in %s: %s", partition.tp, partition.directory.path, error)

    async def stop(self) -> None:
        """End; the next start goes on."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _new_future(self, partition: Partition, directory: LogDirectory) -> FutureLog:
        from logd.storage.future_log import FutureLog  # hardly any broker ever moves a log

        try:
            future = FutureLog(partition.log, partition.directory, directory)
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition} cannot move: {error}") from None
        self.futures[partition.tp] = future
        return future

    async def _call_off(self, key: TopicPartition) -> None:
        task = self._tasks.get(key)
        future = self.futures.pop(key, None)
        if task is None:
            return  # the `alter` that makes its directory gives it up
        if future is not None:  # else somebody else is calling it off
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if future is not None and not future.is_done:
            self._abandon(future)

    def _begin(self, partition: Partition, future: FutureLog) -> None:
        key = partition.tp
        task = asyncio.get_running_loop().create_task(self._move(partition, future))
        self._tasks[key] = task
        task.add_done_callback(partial(self._ended, key, future))

    def _ended(self, key: TopicPartition, future: FutureLog, task: asyncio.Task[None]) -> None:
        """Forget a move that has ended, well or not. A cancelled one is left to `_call_off` or `stop`."""
        del self._tasks[key]
        if task.cancelled():
            return
        self._forget(key, future)
        error = task.exception()
        if error is not None:
            log.error("%s stays in %s: %s", key, future.source.path, error or type(error).__name__)
            if not is_expected(error) and not isinstance(error, NoRoom):
                report(f"moving {future.log.topic}-{future.log.partition}", error)

    # One move

    async def _move(self, partition: Partition, future: FutureLog) -> None:
        async with self._turns:
            try:
                async with self._compaction.paused(partition.log):
                    old = await self._copy(partition, future)
            except FileNotFoundError:  # deleted in the middle of it
                old = None
            except NoRoom:
                self._abandon(future)
                raise
        if old is None:
            return self._abandon(future)
        self._flusher.touched(partition)  # its end is not on the disk there yet
        log.info("%s moved from %s to %s", partition.tp, future.source.path, future.target.path)
        # Both names on the disk, and where to recover from, before the old files go.
        try:
            await self._run(partial(_sync_names, future, future.source.start_checkpoint()))
        except asyncio.CancelledError:
            self._discard([old])
            raise
        self._discard([old])

    async def _copy(self, partition: Partition, future: FutureLog) -> Deletion | None:
        """Copy in rounds until the log goes on in its new directory.

        Return the job that deletes the old files, or None if the move was cancelled.
        """
        target = future.target
        target.arriving[partition.tp] = partition.log
        while self._is_wanted(partition, future):
            await self._round(partition, future, throttled=True)
            if future.is_near and self._is_wanted(partition, future):
                await self._run(future.sync)
                async with self._flusher.paused(partition):
                    old = await self._last_rounds(partition, future)
                if old is not None:
                    return old
            await asyncio.sleep(ROUND_PAUSE_S)
        return None

    async def _last_rounds(self, partition: Partition, future: FutureLog) -> Deletion | None:
        """Have it all on the disk, then catch up with what was appended meanwhile; None if that fails."""
        await self._round(partition, future)
        if self._is_wanted(partition, future):
            await self._run(future.sync)
            await self._run(future.target.start_checkpoint())
        for _ in range(LAST_ROUNDS_MAX):
            await self._round(partition, future)
            old = future.finish() if self._is_wanted(partition, future) else None
            if old is not None:
                partition.directory = future.target
                return old
        return None

    async def _round(self, partition: Partition, future: FutureLog, *, throttled: bool = False) -> None:
        """Copy what there is now."""
        loop = asyncio.get_running_loop()
        future.begin_round()
        ended = False
        while not ended and self._is_wanted(partition, future):
            began = loop.time()
            copied, ended = await self._run(partial(future.copy, COPY_STEP_BYTES))
            while throttled and self._is_wanted(partition, future):
                rate = self._config().replica_alter_log_dirs_io_max_bytes_per_second
                left = began + copied / rate - loop.time()
                if left <= 0:
                    break
                await asyncio.sleep(min(left, LOOK_AGAIN_S))

    def _is_wanted(self, partition: Partition, future: FutureLog) -> bool:
        """Return True if the partition still exists, and its target directory has not failed."""
        key = partition.tp
        return self._partitions.get(key) is partition and future.target.failure is None

    def _abandon(self, future: FutureLog) -> None:
        """Give up a move. If a directory failed, its files stay: the next start continues the move."""
        self._forget(future.log.tp, future)
        if future.target.failure is None and future.source.failure is None:
            self._discard([future.discard()])

    def _forget(self, key: TopicPartition, future: FutureLog) -> None:
        if self.futures.get(key) is future:
            del self.futures[key]
            future.target.arriving.pop(key, None)

    async def _run(self, job: Callable[[], Result]) -> Result:
        return await run_job(self._executor, job)


def _is_of(partition: Partition, paths: Sequence[Path]) -> bool:
    """Return True if a future log here is the partition's, and not a deleted topic's of the same name."""
    ids = [read_partition_metadata(path / PARTITION_METADATA) for path in paths]
    return partition.topic_id in ids


def _sync_names(future: FutureLog, checkpoint: Callable[[], None]) -> None:
    for directory in (future.target, future.source):
        directory.sync()
    checkpoint()
