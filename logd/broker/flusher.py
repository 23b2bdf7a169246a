"""Forcing logs to the disk in the background: what is flushed, a start after a crash need not read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from logd.broker.partition import Partition
from logd.errors import KafkaError

if TYPE_CHECKING:
    from logd.storage import Log

FLUSHES_AT_ONCE = 4
"""Most logs flushed at a time: the thread pool has other work as well."""

logger = logging.getLogger("logd.broker")


class Flusher:
    """Flushes logs, a few at a time and each log once at a time. ``run`` runs a job in the thread pool."""

    def __init__(
        self,
        partitions: Mapping[tuple[str, int], Partition],
        run: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        self._partitions = partitions
        self._run = run
        self._under_way: set[Log] = set()

    async def flush(self, wanted: Callable[[Partition], bool]) -> int:
        """Flush the logs of the partitions ``wanted`` and not being flushed now; how many were.

        A disk that fails is reported by storage, which takes its folder offline.
        """
        waiting = iter([partition for partition in self._partitions.values() if wanted(partition)])
        return sum(await asyncio.gather(*(self._flush_each(waiting) for _ in range(FLUSHES_AT_ONCE))))

    async def _flush_each(self, waiting: Iterator[Partition]) -> int:
        flushed = 0
        for partition in waiting:
            flushed += await self._flush(partition)
        return flushed

    async def _flush(self, partition: Partition) -> bool:
        log = partition.log
        is_deleted = self._partitions.get((partition.topic, partition.index)) is not partition
        if is_deleted or partition.is_offline or log in self._under_way:
            return False
        self._under_way.add(log)
        try:
            flush = log.start_flush()
            if flush is None:
                return False
            await self._run(flush.run)
            log.finish_flush(flush)
        except KafkaError as error:
            if not partition.is_offline:
                logger.error("%s not flushed: %s", partition, error)
            return False
        finally:
            self._under_way.discard(log)
        return True
