"""FencedWriter: a leader's writes to the config topic, which end when another worker leads (KIP-618)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from connect.errors import ConnectError
from connect.stores.topic_log import Pair
from kafka_client import Client, TransactionalProducer
from kafka_client.errors import MillstreamError

_CLOSE_MS = 1_000


class PrivilegedWriteError(ConnectError):
    """An error for a write to the config topic by a worker that has not claimed it, or no longer leads."""


class FencedWriter:
    """A transactional producer for one partition; each `send` is a transaction."""

    def __init__(self, client: Client, topic: str, transactional_id: str) -> None:
        self._client = client
        self._topic = topic
        self._id = transactional_id
        self._producer: TransactionalProducer | None = None
        self._lock = asyncio.Lock()

    async def claim(self) -> None:
        """Take over the transactional id, unless this writer has it. Raises PrivilegedWriteError."""
        async with self._lock:
            if self._producer is not None:
                return
            producer = TransactionalProducer(self._client, self._id, linger_ms=0)
            try:
                self._producer = await producer.start()
            except BaseException as e:
                await producer.close(timeout_ms=_CLOSE_MS)
                if not isinstance(e, MillstreamError):
                    raise
                raise PrivilegedWriteError(f"{self._topic} cannot be claimed as {self._id}: {e}") from e

    async def send(self, pairs: Sequence[Pair]) -> None:
        """Append records, all or none. Raises PrivilegedWriteError, and gives up the right to write then."""
        async with self._lock:
            producer = self._producer
            if producer is None:
                raise PrivilegedWriteError(f"{self._topic} has to be claimed before it is written to")
            try:
                producer.begin()
                await producer.send(self._topic, 0, [(-1, key, value, ()) for key, value in pairs])
                await producer.commit()
            except BaseException as e:
                await self._give_up()
                if not isinstance(e, MillstreamError):
                    raise
                raise PrivilegedWriteError(f"{self._topic} cannot be written to as {self._id}: {e}") from e

    async def close(self) -> None:
        """Give up the right to write."""
        async with self._lock:
            await self._give_up()

    async def _give_up(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close(timeout_ms=_CLOSE_MS)
