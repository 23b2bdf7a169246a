"""Truncating a partition's log where its leader's history is another one, with all that goes on around it.

What holds on to the log's files is called off or ended first: a move to another directory (it begins again),
a compaction (its work is given up), a flush (its end is waited for). Then no checkpoint says more than what
is going to be kept, and only then files are cut, in the thread pool. Where to is said by `logd.replication`;
how it is done is told in `logd.storage.log.truncation`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from logd.broker.work.pool import to_its_end

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.background.compaction import Compaction
    from logd.broker.background.flusher import Flusher
    from logd.broker.background.log_dir_moves import LogDirMoves
    from logd.broker.partition.partition import Partition
    from logd.storage import Deletion, LogDirectory
    from logd.storage.log.truncation import Truncation

RUNNING_MAX = 64
"""Logs truncated at a time: a new leader may have many truncated, and the thread pool has other work."""

logger = logging.getLogger("logd.broker")


class Truncations:
    """``run`` runs a job in the thread pool, ``discard`` has files deleted, ``high_watermarks`` gives those
    of all partitions. While a partition is truncated every call of its log raises KafkaError, and nothing is
    to be copied to it. ``stop`` comes before everything that is called off here is stopped.
    """

    def __init__(
        self,
        *,
        run: Callable[[Callable[[], None]], Awaitable[None]],
        now_ms: Callable[[], int],
        high_watermarks: Callable[[], Mapping[TopicPartition, int]],
        discard: Callable[[Sequence[Deletion]], None],
        flusher: Flusher,
        compaction: Compaction,
        moves: LogDirMoves,
    ) -> None:
        self._run = run
        self._now_ms = now_ms
        self._high_watermarks = high_watermarks
        self._discard = discard
        self._flusher = flusher
        self._compaction = compaction
        self._moves = moves
        self._turns = asyncio.Semaphore(RUNNING_MAX)
        self._waiting = 0
        self._running: set[asyncio.Task[None]] = set()
        self._checkpoints: dict[LogDirectory, asyncio.Future[None]] = {}
        """Checkpoints that have not begun yet: all callers that need one share it."""
        self._checkpointing: dict[LogDirectory, asyncio.Lock] = {}

    def statistics(self) -> dict[str, int]:
        """Return the count of partitions that are truncated or wait for it, and how many are at a time."""
        return {"truncations": self._waiting, "running_max": RUNNING_MAX}

    async def stop(self) -> None:
        """Wait for the truncations that run. The caller sees to it that no other is begun."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Drop everything from the batch that holds ``offset`` on; the log may end before it then.

        The high watermark goes back with it. A crash leaves the log as it was, or without some of its end.
        Raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE where what stays is damaged.
        """
        log = partition.log
        if offset >= log.log_end_offset:
            log.shortening.start_truncation(offset, self._now_ms())
            self._flusher.touched(partition)  # an epoch without a record may have gone
            return
        await self._shorten(partition, lambda: log.shortening.start_truncation(offset, self._now_ms()))
        logger.info("%s truncated to offset %d: it ends at %d", partition.tp, offset, log.log_end_offset)

    async def begin_afresh(self, partition: Partition, offset: int) -> None:
        """Drop everything and begin at ``offset``, where the leader's log begins. Raises KafkaError."""
        log = partition.log
        await self._shorten(partition, lambda: log.shortening.start_afresh(offset, self._now_ms()))
        logger.info("%s begins afresh at offset %d", partition.tp, offset)

    async def note_removals(self, partition: Partition, offset: int) -> None:
        """Have on the disk that the log may lack deletions and transaction markers before ``offset``, which
        are gone from its leader's. KafkaError(KAFKA_STORAGE_ERROR).
        """
        await self._in_turn(self._note_removals(partition, offset))

    async def _note_removals(self, partition: Partition, offset: int) -> None:
        async with self._moves.interrupted(partition):
            partition.log.removals.raise_to(offset)
            await self._run(partition.log.compaction.save_removals)

    async def _shorten(self, partition: Partition, start: Callable[[], Truncation | None]) -> None:
        await self._in_turn(self._shorten_alone(partition, start))

    async def _in_turn(self, work: Coroutine[None, None, None]) -> None:
        self._waiting += 1
        try:
            async with self._turns:
                task = asyncio.ensure_future(work)
                self._running.add(task)
                task.add_done_callback(self._running.discard)
                await to_its_end(task)
        except BaseException:
            work.close()  # it may not have begun
            raise
        finally:
            self._waiting -= 1

    async def _shorten_alone(self, partition: Partition, start: Callable[[], Truncation | None]) -> None:
        async with (
            self._moves.interrupted(partition),
            self._compaction.paused(partition.log),
            self._flusher.paused(partition),
        ):
            await self._flush(partition)
            truncation = start()
            if truncation is not None:
                await self._carry_out(partition, truncation)

    async def _flush(self, partition: Partition) -> None:
        flusher = partition.log.flusher
        while (flush := flusher.start_flush()) is not None:
            await self._run(flush.run)
            flusher.finish_flush(flush)
            partition.flush_ended()

    async def _carry_out(self, partition: Partition, truncation: Truncation) -> None:
        before = partition.high_watermark
        partition.high_watermark = min(before, truncation.recovery_point)  # for every checkpoint from now on
        try:
            await self._compaction.cut(partition, truncation.recovery_point)
            await self._checkpoint(partition.directory)
            await self._run(truncation.run)
        finally:
            self._discard(truncation.finish())
            partition.truncated(before)
            self._flusher.touched(partition)

    async def _checkpoint(self, directory: LogDirectory) -> None:
        """Write the directory's checkpoint as of now or later; many may wait for the same one."""
        shared = self._checkpoints.get(directory)
        if shared is None:
            shared = self._checkpoints[directory] = asyncio.ensure_future(self._write_checkpoint(directory))
        await asyncio.shield(shared)

    async def _write_checkpoint(self, directory: LogDirectory) -> None:
        async with self._checkpointing.setdefault(directory, asyncio.Lock()):
            del self._checkpoints[directory]
            await self._run(directory.start_checkpoint(self._high_watermarks()))
