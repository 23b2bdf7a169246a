"""A transaction of a transactional producer, from `begin` to its end."""

from __future__ import annotations

import asyncio

from kafka_client.futures import retrieve_failure
from kafka_client.topic_partition import TopicPartition


class Transaction:
    """A transaction: its number, its partitions, and how many calls are adding to it.

    `outcome` is done when the transaction is committed; its exception says why it was not.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.partitions: set[TopicPartition] = set()
        self.to_add: list[TopicPartition] = []
        """Partitions for which no AddPartitionsToTxn was sent yet."""
        self.is_announced = False
        """True if a request was sent by which the coordinator may know the transaction."""
        self.is_confirmed = False
        """True if such a request was answered, so that the coordinator does know it."""
        self.ending = False
        """True if the transaction takes no more records."""
        self.ended = False
        """True if its EndTxn is answered."""
        self.lost = False
        """True if the coordinator knows neither the transaction nor the producer any more."""
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A caller that does not await the outcome gets the error by its next call.
        self.outcome.add_done_callback(retrieve_failure)
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> None:
        """Count a call that adds to the transaction."""
        self._calls += 1
        self._idle.clear()

    def __exit__(self, *exc_info: object) -> None:
        self._calls -= 1
        if not self._calls:
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is adding to the transaction."""
        await self._idle.wait()
