"""Sessions for a test, and waiting in its loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from logd.metadata.zookeeper.session.session import Event, Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from tests.logd.metadata.zookeeper.proxy import Proxy

SECONDS = 100.0
"""Far more than any wait takes."""
SHORT_MS = 1500
"""A session that is to expire, and not before, on a machine that is busy elsewhere."""


@asynccontextmanager
async def opened(connect: str, **settings: Any) -> AsyncIterator[Session]:
    """Yield an open session, and close it at the end."""
    session = Session(ZooKeeperSettings.of(connect, **settings))
    await session.open()
    try:
        yield session
    finally:
        await session.close()


def events_of(session: Session) -> list[Event]:
    """Return a list to which the session's events are added from now on."""
    events: list[Event] = []
    session.add_listener(events.append)
    return events


def through(proxy: Proxy, connect: str) -> str:
    """Return the connect string of the same chroot by way of the proxy."""
    return proxy.address + connect[connect.index("/") :]


async def wait_until_gone(session: Session, path: str) -> None:
    """Wait until there is no such znode."""
    async with asyncio.timeout(SECONDS):
        while await session.exists(path) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def come(session: Session, path: str) -> None:
    """Wait until there is such a znode."""
    async with asyncio.timeout(SECONDS):
        while await session.exists(path) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
