"""Work on files that continues after the request was answered, by topic.

A topic's files are made and taken away by the names of its partitions: so what has begun for a name ends
before the next begins. What a crash interrupts the next start finishes, from the cluster's metadata.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from logd.broker.work.pool import PoolClosed

TOPICS_MAX = 1000
"""Most topics with work under way or waiting; changes of further topics wait, see `DiskWork.room`."""

log = logging.getLogger("logd.broker")


class DiskWork:
    """At most one piece of work for a topic's name at a time."""

    def __init__(self, topics_max: int = TOPICS_MAX) -> None:
        self._topics_max = topics_max
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._has_room = asyncio.Event()
        self._has_room.set()

    def statistics(self) -> dict[str, int]:
        """Return the count of topics that have work under way, and its bound."""
        return {"topics": len(self._tasks), "topics_max": self._topics_max}

    def begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Have work done as soon as what was begun before for the name has ended."""
        before = self._tasks.get(name)
        task = self._tasks[name] = asyncio.get_running_loop().create_task(_after(before, work))
        task.add_done_callback(lambda task: self._ended(name, task))
        if len(self._tasks) > self._topics_max:
            self._has_room.clear()

    async def room(self) -> None:
        """Wait while more topics than the bound have work under way; to be called behind each change.

        So clients that make and delete topics faster than the disk does wait for it.
        """
        await self._has_room.wait()

    async def ended(self, name: str) -> None:
        """Wait until nothing is going on for the name."""
        while (task := self._tasks.get(name)) is not None:
            await asyncio.wait((task,))

    async def all_ended(self) -> None:
        """Wait until nothing is going on."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
            if len(self._tasks) <= self._topics_max:
                self._has_room.set()
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PoolClosed):
            log.info(
                "files of topic %s: the next start finishes what the broker's end interrupts",
                name,
                extra={"topic": name},
            )
        elif error is not None:
            log.error("files of topic %s", name, exc_info=error, extra={"topic": name})


async def _after(before: asyncio.Task[None] | None, work: Coroutine[None, None, None]) -> None:
    if before is not None:
        await asyncio.wait((before,))
    await work
