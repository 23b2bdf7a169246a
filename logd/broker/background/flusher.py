"""Forcing logs to the disk, in the thread pool.

A flush writes all there is of a log and raises its recovery point. It runs in the background, so that a
start after a crash has little to read: by the clock, and as soon as more bytes than ``bytes_max`` were
written. Each flush is followed by a rest of its length, unless so much waits: what was written to thousands
of partitions at once, as when their leader is lost, would keep both cores from those who write.

A sync forces the records alone. An acknowledgement waits for one where flush.messages or flush.ms ask for it:
whatever is appended while one fsync runs is covered by the next, however many wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError, error_for
from logd.broker.work.periodic import is_expected, report

if TYPE_CHECKING:
    from logd.broker.partition.partition import Partition
    from logd.storage import Log

FLUSHES_AT_ONCE = 4
"""Most logs flushed at a time in the background: the thread pool has other work as well."""
SYNCS_AT_ONCE = 4
"""Most logs synced at a time for acknowledgements, besides."""
LOOK_AGAIN_S = 0.001
"""Interval at which `held` looks whether the flush under way has ended."""

logger = logging.getLogger("logd.broker")


class Flusher:
    """Flushes logs, a few at a time and each log once at a time. ``run`` runs a job in the thread pool;
    ``rest`` waits for so many seconds.

    Only partitions that ``appended`` or ``touched`` named are looked at: what is idle costs nothing.
    """

    def __init__(
        self,
        run: Callable[[Callable[[], None]], Awaitable[None]],
        bytes_max: int,
        *,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._run = run
        self._rest = rest
        self._bytes_max = bytes_max
        self._dirty: dict[Partition, None] = {}
        self._bytes = 0
        self._is_full = asyncio.Event()
        self._under_way: set[Log] = set()
        self._syncs: dict[Partition, asyncio.Future[None]] = {}
        self._syncing: dict[Partition, asyncio.Task[None]] = {}
        self._rounds: dict[Partition, tuple[int, asyncio.Future[None]]] = {}
        """Syncs under way, and up to where."""
        self._syncs_at_once = asyncio.Semaphore(SYNCS_AT_ONCE)
        self._resumed: dict[Partition, asyncio.Event] = {}

    def statistics(self) -> dict[str, int]:
        """Return the flusher's queues and bounds, by name.

        A flush of all begins at `unflushed_bytes_max` bytes appended since the last flush.
        `waiting_partitions` have appends that wait for the next sync.
        """
        return {
            "dirty_partitions": len(self._dirty),
            "unflushed_bytes": self._bytes,
            "unflushed_bytes_max": self._bytes_max,
            "flushing": len(self._under_way),
            "flushing_max": FLUSHES_AT_ONCE,
            "syncing": len(self._rounds),
            "syncing_max": SYNCS_AT_ONCE,
            "waiting_partitions": len(self._syncs),
        }

    # What is there to flush

    def appended(self, partition: Partition, size: int) -> None:
        """Note that ``size`` bytes were appended to the partition's log."""
        self._dirty[partition] = None
        self._bytes += size
        if self._bytes >= self._bytes_max:
            self._is_full.set()

    def touched(self, partition: Partition) -> None:
        """Note that the log has something to flush besides records, such as its epochs."""
        self._dirty[partition] = None

    def forget(self, partition: Partition) -> None:
        """Forget a partition that is closed."""
        self._dirty.pop(partition, None)

    async def full(self) -> None:
        """Wait until so much is unflushed that the next flush should not wait for its time."""
        await self._is_full.wait()

    # In the background

    async def flush_all(self) -> int:
        """Flush what is dirty and not being flushed now; how many logs were.

        A disk that fails is reported by storage, which takes its directory offline.
        """
        self._bytes = 0
        self._is_full.clear()
        return await self._flush(tuple(self._dirty))

    async def _flush(self, partitions: Iterable[Partition]) -> int:
        waiting = iter(partitions)
        return sum(await asyncio.gather(*(self._flush_each(waiting) for _ in range(FLUSHES_AT_ONCE))))

    async def _flush_each(self, waiting: Iterator[Partition]) -> int:
        flushed, clock = 0, asyncio.get_running_loop().time
        for partition in waiting:
            began = clock()
            if await self._flush_one(partition):
                flushed += 1
                if not self._is_full.is_set():
                    await self._rest(clock() - began)
        return flushed

    async def _flush_one(self, partition: Partition) -> bool:
        log = partition.log
        if partition not in self._dirty or log in self._under_way or partition in self._resumed:
            return False
        del self._dirty[partition]
        if partition.is_offline:
            return False
        self._under_way.add(log)
        try:
            flush = log.flusher.start_flush()
            if flush is None:
                return False
            await self._run(flush.run)
            log.flusher.finish_flush(flush)
            partition.flush_ended()
        except Exception as error:
            if not is_expected(error):
                self._dirty[partition] = None  # its recovery point stays where it was
            if not partition.is_offline:
                report(f"{partition} not flushed", error)
            return False
        finally:
            self._under_way.discard(log)
        return True

    # Before an acknowledgement

    def sync(self, partition: Partition) -> asyncio.Future[None]:
        """Return a future that is done once everything appended so far is on the disk.

        It fails with KafkaError(KAFKA_STORAGE_ERROR). Callers share it: shield it from their cancellation.
        """
        future = self._syncs.get(partition)
        if future is None:
            loop = asyncio.get_running_loop()
            future = self._syncs[partition] = loop.create_future()
            # Nobody may be left to hear of a failure: acks=0, or a client that went away.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            if partition not in self._syncing:
                self._syncing[partition] = loop.create_task(self._sync_rounds(partition))
        return future

    def synced(self, partition: Partition, offset: int) -> asyncio.Future[None]:
        """Return a future that is done once the record at ``offset`` is on the disk, as `sync` does."""
        end, under_way = self._rounds.get(partition, (0, None))
        if under_way is not None and (offset < end or partition not in self._syncs):
            return under_way
        return self.sync(partition)

    def sync_due(self, now_ms: int) -> None:
        """Begin the syncs that flush.ms asks for in partitions without an append that would begin them."""
        for partition in tuple(self._dirty):
            if (
                partition.holds_back
                and not partition.is_offline
                and partition.log.flusher.needs_flush(now_ms)
            ):
                self.sync(partition)

    async def _sync_rounds(self, partition: Partition) -> None:
        """Sync the log, and again as long as the last sync left appends waiting."""
        try:
            while partition in self._syncs:
                async with self._syncs_at_once:
                    resumed = self._resumed.get(partition)
                    if resumed is None:
                        try:
                            await self._sync_round(partition)
                        except Exception as error:
                            # Those who waited for it got the error; those who came since wait for the next
                            # one.
                            report(f"{partition} not synced", error)
                if resumed is not None:
                    await resumed.wait()
        finally:
            del self._syncing[partition]

    async def _sync_round(self, partition: Partition) -> None:
        log, future = partition.log, self._syncs.pop(partition)
        self._rounds[partition] = log.log_end_offset, future
        try:
            sync = log.flusher.start_sync()
            if sync is not None:
                await self._run(sync.run)
                log.flusher.finish_flush(sync)
            partition.flush_ended()
        except BaseException as error:
            future.set_exception(error if isinstance(error, KafkaError) else _stopped(partition))
            if not isinstance(error, KafkaError):
                raise
        else:
            future.set_result(None)
        finally:
            del self._rounds[partition]

    @contextlib.asynccontextmanager
    async def paused(self, partition: Partition) -> AsyncIterator[None]:
        """Delay the partition's flushes meanwhile, so that its log can move; acknowledgements wait."""
        released = self._resumed[partition] = asyncio.Event()
        try:
            while partition.log.flusher.is_flushing and not partition.is_offline:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)
            yield
        finally:
            del self._resumed[partition]
            released.set()

    async def stop(self) -> None:
        """Wait for the syncs under way."""
        await asyncio.gather(*self._syncing.values(), return_exceptions=True)


def _stopped(partition: Partition) -> KafkaError:
    return error_for(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} was not flushed")
