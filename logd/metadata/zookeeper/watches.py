"""Reads that are repeated when the data has changed, or a connection was lost.

ZooKeeper's watches fire once, do not say what has changed, and are gone when a connection is lost. So a
`Watch` says only that it is time to read again, also after each loss of the connection. A read after several
changes returns the last one. A watch queues one flag and no events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from logd.metadata.zookeeper.errors import NoNode
from logd.metadata.zookeeper.session.operations import Stat
from logd.metadata.zookeeper.session.session import Event, Session
from logd.metadata.zookeeper.znodes import paths, znodes
from logd.metadata.zookeeper.znodes.znodes import Registration

log = logging.getLogger("logd.zookeeper")


class Watch:
    """A watch as a context manager: read through it, wait for `changed`, read again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._flag = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        self._forget = self._session.add_listener(self._watch_fired)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()

    async def find(self, path: str) -> tuple[bytes, Stat] | None:
        """Return the znode's value and stat, or None if it does not exist.

        The znode is watched for its creation, deletion and new values.
        """
        while True:
            try:
                return await self._session.get(path, self._triggered)
            except NoNode:
                if await self._session.exists(path, self._triggered) is None:
                    return None

    async def children(self, path: str) -> list[str]:
        """Return the sorted names of the children; none if the znode does not exist.

        The znode is watched for new and deleted children.
        """
        while True:
            try:
                return await self._session.children(path, self._triggered)
            except NoNode:
                if await self._session.exists(path, self._triggered) is None:
                    return []

    async def changed(self) -> None:
        """Wait until it is time to read again."""
        await self._flag.wait()
        self._flag.clear()

    def trigger(self) -> None:
        """Have `changed` return at once."""
        self._flag.set()

    def _watch_fired(self, event: Event) -> None:
        # No read is answered while the session is SUSPENDED.
        if event is not Event.SUSPENDED:
            self._flag.set()

    def _triggered(self, _: object) -> None:
        """Wake the loop. kazoo calls this method in one of its threads."""
        try:
            self._loop.call_soon_threadsafe(self._flag.set)
        except RuntimeError:
            # The loop is closed.
            return


def report(task: asyncio.Task[None]) -> None:
    """Log the unexpected end of a background task, which should end only by cancellation."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s has ended by an unexpected error", task.get_name(), exc_info=error)


async def each_value(session: Session, path: str) -> AsyncIterator[tuple[bytes, Stat] | None]:
    """Yield the znode's value now, and again after each change."""
    with Watch(session) as watch:
        while True:
            yield await watch.find(path)
            await watch.changed()


async def each_children(session: Session, path: str) -> AsyncIterator[list[str]]:
    """Yield the names of the children now, and again after each change."""
    with Watch(session) as watch:
        while True:
            yield await watch.children(path)
            await watch.changed()


class LiveBroker(NamedTuple):
    """A registered broker; its epoch is the czxid of its znode, which differs for each registration."""

    registration: Registration
    epoch: int


async def each_brokers(session: Session) -> AsyncIterator[Mapping[int, LiveBroker]]:
    """Yield the registered brokers by id, now and again after each change of a registration."""
    with Watch(session) as watch:
        while True:
            live: dict[int, LiveBroker] = {}
            for name in await watch.children(paths.BROKER_IDS):
                value = await watch.find(f"{paths.BROKER_IDS}/{name}")
                if value is not None:
                    live[int(name)] = LiveBroker(
                        znodes.decode_registration(int(name), value[0]), value[1].czxid
                    )
            yield live
            await watch.changed()
