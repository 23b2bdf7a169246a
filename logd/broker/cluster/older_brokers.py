"""The brokers of an older release in the cluster, which do not log in to other brokers.

During a rolling upgrade both releases run together. A broker that logs in says so in its registration in
ZooKeeper. While a registration does not say it, requests between brokers are served without the login, as
before the upgrade.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from logd.metadata.zookeeper.errors import ZooKeeperError
from logd.metadata.zookeeper.registration import registrations
from logd.metadata.zookeeper.session.session import Session

PAUSE_S: Final = 1.0
"""The shortest time between two looks at ZooKeeper: peers that are refused cannot make them frequent."""

log = logging.getLogger("logd.cluster")


class OlderBrokers:
    """The ids of older brokers, as ZooKeeper had them at the last look; `read` comes first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: frozenset[int] = frozenset()
        self._task: asyncio.Task[None] | None = None
        self._is_outdated = False

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._ids

    def __bool__(self) -> bool:
        return bool(self._ids)

    async def read(self) -> None:
        """Look at the registrations. Raises ZooKeeperError."""
        before = self._ids
        registered = await registrations(self._session)
        self._ids = frozenset(id_ for id_, broker in registered.items() if not broker.logs_in)
        if self._ids and self._ids != before:
            log.warning(
                "requests between brokers are served without a login, as long as brokers of an older release "
                "are registered: %s. Upgrade them",
                ", ".join(map(str, sorted(self._ids))),
            )
        elif before and not self._ids:
            log.info("all brokers log in to each other: requests between brokers need the login now")

    def refresh(self) -> None:
        """Have the registrations looked at again, soon: brokers may have come, gone or been upgraded."""
        self._is_outdated = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        while self._is_outdated:
            self._is_outdated = False
            try:
                await self.read()
            except ZooKeeperError as error:
                # The last look still counts; the next peer that is refused asks for another.
                log.debug("the registrations of brokers were not read: %s", error)
            await asyncio.sleep(PAUSE_S)

    async def stop(self) -> None:
        """Stop looking at ZooKeeper."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
