"""Histories of a transactional producer at a real broker, and a model of what readers find committed."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

from kafka_client import Admin, BatchFetcher, Client, NewTopic, TopicPartition, TransactionalProducer
from kafka_client.errors import ProducerFenced, TransactionError
from kafka_client.fetcher.offsets import LATEST, list_offsets
from kafka_client.group.coordinator import fetch_offsets

PARTITIONS = 3
ACTIONS = (
    "begin",
    "send",
    "send",
    "send many",
    "offsets",
    "commit",
    "commit soon",
    "abort",
    "fence",
    "abandon",
)


def random_actions(seed: int, count: int) -> list[str]:
    """Return random actions; `play` skips those that are out of place."""
    return random.Random(seed).choices(ACTIONS, k=count)


class History:
    """A transactional id and its changing producers; `name` is the topic, the group and the id."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.committed: dict[int, list[bytes]] = defaultdict(list)
        self.offset = -1
        self._number = 0
        self._open: list[tuple[int, bytes]] | None = None
        self._open_offset = -1
        self._closing: tuple[asyncio.Future[None], list[tuple[int, bytes]], int] | None = None
        self._clients: list[Client] = []
        self._producers: list[TransactionalProducer] = []

    async def play(self, actions: Sequence[str]) -> None:
        """Do the actions, then assert that every partition and the group's offset agree with the model."""
        async with Client(self.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(self.name, PARTITIONS)])
            try:
                await self._take_over()
                for action in actions:
                    await getattr(self, "_" + action.replace(" ", "_"))()
                await self._settle()
                if self._open is not None:
                    await self._abort()
                await self._check(client)
            finally:
                for producer in self._producers:
                    await producer.close(timeout_ms=0)
                for made in self._clients:
                    await made.close()

    @property
    def _producer(self) -> TransactionalProducer:
        return self._producers[-1]

    async def _take_over(self) -> None:
        client = await Client(self.bootstrap).connect()
        self._clients.append(client)
        producer = TransactionalProducer(client, self.name, linger_ms=0, batch_size=200)
        self._producers.append(producer)
        await producer.start()

    # --- actions ---

    async def _begin(self) -> None:
        if self._open is None:
            self._producer.begin()
            self._open, self._open_offset = [], -1

    async def _send(self, count: int = 1) -> None:
        if self._open is None:
            return
        partition = self._number % PARTITIONS
        values = [b"%d.%d" % (self._number, n) for n in range(count)]
        self._number += 1
        await self._producer.send(self.name, partition, [(0, None, value, ()) for value in values])
        self._open += [(partition, value) for value in values]

    async def _send_many(self) -> None:
        await self._send(20)

    async def _offsets(self) -> None:
        if self._open is not None:
            self._number += 1
            await self._producer.send_offsets({TopicPartition(self.name, 0): self._number}, self.name)
            self._open_offset = self._number

    async def _commit(self) -> None:
        await self._commit_soon()
        await self._settle()

    async def _commit_soon(self) -> None:
        if self._open is None:
            return
        outcome = await self._producer.commit_soon()
        await self._settle()  # the transaction before; this one's outcome is awaited later
        self._closing, self._open = (outcome, self._open, self._open_offset), None

    async def _abort(self) -> None:
        if self._open is not None:
            await self._producer.abort()
            self._open = None

    async def _fence(self) -> None:
        """Another producer takes the id; this one may not commit any more."""
        await self._settle()
        old, had = self._producer, self._open
        await self._take_over()
        if had:
            try:
                await old.commit()
            except TransactionError:
                pass
            else:
                raise AssertionError("a fenced producer committed")
            try:
                await old.abort()
            except ProducerFenced:
                pass
            else:
                raise AssertionError("a fenced producer aborted")
        self._open = None

    async def _abandon(self) -> None:
        """Let the producer's process die; the start of the next producer aborts its open transaction."""
        await self._settle()
        await self._clients[-1].close()
        await self._take_over()
        self._open = None

    # --- the model ---

    async def _settle(self) -> None:
        """Wait for the commit under way."""
        if self._closing is None:
            return
        (outcome, values, offset), self._closing = self._closing, None
        await outcome
        for partition, value in values:
            self.committed[partition].append(value)
        if offset >= 0:
            self.offset = offset

    async def _check(self, client: Client) -> None:
        tps = [TopicPartition(self.name, number) for number in range(PARTITIONS)]
        committed = await read_committed(client, tps)
        assert {tp.partition: values for tp, values in committed.items() if values} == dict(self.committed)
        offsets = await fetch_offsets(client, self.name, tps[:1])
        assert (offsets[tps[0]].offset if offsets else -1) == self.offset


async def read_committed(client: Client, tps: Sequence[TopicPartition]) -> dict[TopicPartition, list[bytes]]:
    """Everything a reader of committed records sees, once no transaction is open in these partitions."""
    while True:
        stable = await list_offsets(client, dict.fromkeys(tps, LATEST), isolation_level="read_committed")
        ends = await list_offsets(client, dict.fromkeys(tps, LATEST))
        if all(stable[tp].offset == ends[tp].offset for tp in tps):
            break
        await asyncio.sleep(0.01)
    values_of: dict[TopicPartition, list[bytes]] = {tp: [] for tp in tps}
    async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
        for tp in tps:
            fetcher.add(tp, 0)
        while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
            for fetched in await fetcher.fetch(timeout_ms=100):
                values_of[fetched.tp] += [record[3] or b"" for record in fetched.records()]
    return values_of
