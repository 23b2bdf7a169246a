"""ZombieFencing: the leader's round that keeps tasks of older plans from writing (KIP-618).

A round depends on whether tasks were planned since the last one, and on the number of tasks before. If there
was no round before, or one task was and is planned, the new count is written at once. The task's own producer
fences then. Otherwise the producers of all former tasks are fenced first. Without a new plan there is nothing
to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from connect.errors import ConnectError, Rebalancing
from connect.herder import Herder
from connect.stores import ConfigRecord
from connect.stores.config_records import TASK_COUNT, Decision
from kafka_client import Client, TransactionalProducer
from kafka_client.errors import MillstreamError

_log = logging.getLogger(__name__)
_FENCED_AT_ONCE = 16
_TIMEOUT_MS = 60_000
_CLOSE_MS = 1_000


def task_transactional_id(group: str, connector: str, task: int) -> str:
    """Return the transactional id of a task, as Kafka's workers name it."""
    return f"{group}-{connector}-{task}"


class ZombieFencing:
    """The rounds of a group's leader; one a connector at a time, which all that ask wait for."""

    def __init__(
        self,
        client: Client,
        group: str,
        herder: Herder,
        *,
        read_to_end: Callable[[], Awaitable[object]],
        change: Callable[[Decision], Awaitable[None]],
    ) -> None:
        self._client = client
        self._group = group
        self._herder = herder
        self._read_to_end = read_to_end
        self._change = change
        self._rounds: dict[str, asyncio.Task[None]] = {}

    async def fence(self, connector: str) -> None:
        """Return once no task of an older plan can write.

        Raises Rebalancing if the tasks are planned again meanwhile, ConnectError if the round fails.
        """
        if (running := self._rounds.get(connector)) is None:
            running = asyncio.create_task(self._round(connector), name=f"fencing of {connector}")
            self._rounds[connector] = running
            running.add_done_callback(lambda _: self._rounds.pop(connector, None))
        await asyncio.shield(running)

    async def close(self) -> None:
        """Stop the rounds."""
        rounds = list(self._rounds.values())
        for each in rounds:
            each.cancel()
        await asyncio.gather(*rounds, return_exceptions=True)

    async def _round(self, connector: str) -> None:
        await self._read_to_end()
        config = self._herder.config
        if not config.is_pending_fencing(connector):
            return
        before, count = config.fenced_task_count(connector), config.task_count(connector)
        generation = config.generation(connector)
        if before is not None and not (before == 1 == count):
            await self._fence_producers(connector, before)
            await self._read_to_end()
        await self._change(lambda: self._counted(connector, count, generation))

    def _counted(self, connector: str, count: int, generation: int | None) -> list[ConfigRecord]:
        """Return the record that ends a round, unless tasks were planned since: those are not fenced yet."""
        if self._herder.config.generation(connector) != generation:
            raise Rebalancing(
                "Fencing failed because new task configurations were generated for the connector"
            )
        return [(TASK_COUNT + connector, {"task-count": count})]

    async def _fence_producers(self, connector: str, count: int) -> None:
        slots = asyncio.Semaphore(_FENCED_AT_ONCE)

        async def fence(task: int) -> None:
            async with slots:
                await fence_producer(self._client, task_transactional_id(self._group, connector, task))

        try:
            await asyncio.gather(*(fence(task) for task in range(count)))
        except MillstreamError as e:
            raise ConnectError(f"the {count} older tasks of {connector} are not fenced: {e}") from e
        _log.info("fenced the producers of %d older tasks of %s", count, connector)


async def fence_producer(client: Client, transactional_id: str) -> None:
    """Fence the producer with this id: its open transaction is aborted, and it can write no more.

    As Java's Admin.fenceProducers, this takes the id over and gives it up. Raises MillstreamError.
    """
    producer = TransactionalProducer(client, transactional_id)
    try:
        await producer.start(timeout_ms=_TIMEOUT_MS)
    finally:
        await producer.close(timeout_ms=_CLOSE_MS)
