"""The check of a controller's epoch against ZooKeeper: no peer is believed about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.zookeeper.cluster import controller_epoch
from logd.metadata.zookeeper.session.session import Session

TIMEOUT_S: Final = 10.0
"""How long an update may wait for ZooKeeper; the controller sends it again."""


class EpochProof:
    """The highest controller epoch that ZooKeeper has shown to this broker.

    `elected` returns the epoch of the controller that this broker's election has seen in ZooKeeper last.
    """

    def __init__(self, session: Session, elected: Callable[[], int]) -> None:
        self._session = session
        self._elected = elected
        self._proven = 0

    async def check(self, epoch: int) -> None:
        """Return if a controller of this epoch, or of a later one, was elected.

        ZooKeeper is only asked about an epoch that is new to this broker. Raises
        KafkaError(STALE_CONTROLLER_EPOCH) if there was no such election, KafkaError(REQUEST_TIMED_OUT) if
        ZooKeeper does not answer, and ZooKeeperError.
        """
        self._proven = max(self._proven, self._elected())
        if epoch <= self._proven:
            return
        try:
            async with asyncio.timeout(TIMEOUT_S):
                self._proven = max(self._proven, await controller_epoch(self._session))
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"whether controller epoch {epoch} is real, ZooKeeper did not say",
            ) from None
        if epoch > self._proven:
            raise KafkaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"ZooKeeper has controller epoch {self._proven}, not yet {epoch}",
            )
