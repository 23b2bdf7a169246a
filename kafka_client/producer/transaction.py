"""One transaction of a transactional producer, from `begin` to its end."""

from __future__ import annotations

import asyncio

from kafka_client.cluster.futures import retrieve_failure
from kafka_client.topic_partition import TopicPartition


class Transaction:
    """Its number, what it has written to, and who is still at it.

    `outcome`: done when it is committed; its exception is why it was not.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.partitions: set[TopicPartition] = set()
        self.to_add: list[TopicPartition] = []
        """Partitions that the coordinator was not told of yet."""
        self.asked = False
        """Whether the coordinator, or a broker on behalf of it, may know of the transaction."""
        self.known = False
        """Whether it does for certain."""
        self.ending = False
        """Whether it takes no more records."""
        self.ended = False
        """Whether its EndTxn is answered."""
        self.lost = False
        """Whether the coordinator knows neither the transaction nor the producer any more."""
        self.outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whoever does not ask for the outcome hears of it by the next call.
        self.outcome.add_done_callback(retrieve_failure)
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> None:
        """A call that adds to the transaction begins."""
        self._calls += 1
        self._idle.clear()

    def __exit__(self, *exc_info: object) -> None:
        self._calls -= 1
        if not self._calls:
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is adding to it."""
        await self._idle.wait()
