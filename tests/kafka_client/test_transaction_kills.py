"""A broker killed in the middle of transactions, and producers that die with their outcome unknown.

The story: numbers are copied in transactions, each with the offset of the next number. A producer goes on
where it is when the broker comes back; a new one with the same id goes on where the group's offset says. In
the end every number is there once, and in order.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition, TransactionalProducer
from kafka_client.errors import AbortableTransactionError, ConnectionClosed
from kafka_client.group.coordinator import fetch_offsets
from kafka_client.producer import transaction_manager
from kafka_client.wire.messages.metadata import MetadataRequest
from tests.kafka_client.running import QUICK, run
from tests.kafka_client.transaction_history import read_committed
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NUMBERS = 480
IN_ONE = 4
PARTITIONS = 3
SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10,
}
INPUT = TopicPartition("in", 0)
PATIENT = {**QUICK, "connect_timeout_ms": 50_000}


class Copier:
    """Copies numbers; `position` is the next one to send, `restarts` how often a new producer took over."""

    def __init__(self, bootstrap: str) -> None:
        self.position = 0
        self.restarts = 0
        self._bootstrap = bootstrap
        self._dies = asyncio.Event()

    def die(self) -> None:
        """Kill the producer and its client at any point of their work; another producer takes over."""
        self._dies.set()

    async def copy(self) -> None:
        """Copy until all numbers are there, with a new client after each death."""
        while self.position < NUMBERS:
            async with Client(self._bootstrap, **PATIENT) as client:
                await self._copy_until_death(client)

    async def _copy_until_death(self, client: Client) -> None:
        self._dies.clear()
        producer = TransactionalProducer(client, "copier", linger_ms=0)
        death = asyncio.create_task(self._dies.wait())
        work = asyncio.create_task(self._copy(client, producer))
        try:
            await asyncio.wait((death, work), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
            else:
                self.restarts += 1
                await client.close()
        finally:
            for task in (death, work):
                task.cancel()
            await asyncio.gather(death, work, return_exceptions=True)
            await producer.close(timeout_ms=0)

    async def _copy(self, client: Client, producer: TransactionalProducer) -> None:
        await producer.start()
        self.position = await committed(client)
        while True:
            try:
                while self.position < NUMBERS:
                    producer.begin()
                    for number in range(self.position, self.position + IN_ONE):
                        await producer.send("t", number % PARTITIONS, [(0, None, b"%d" % number, ())])
                    self.position += IN_ONE
                    closing = await producer.commit_soon({INPUT: self.position}, "g")
                await closing
                return
            except AbortableTransactionError:
                await producer.abort()
                self.position = await committed(client)


async def committed(client: Client) -> int:
    offsets = await fetch_offsets(client, "g", [INPUT])
    return offsets[INPUT].offset if offsets else 0


@deep
@pytest.mark.parametrize("version", [1, 2])
def test_every_number_once_whatever_dies(tmp_path: Path, version: int) -> None:
    async def test(logd: LogdProcess) -> None:
        async with Client(logd.bootstrap, **PATIENT) as client:
            await Admin(client).create_topics([NewTopic("t", PARTITIONS), NewTopic("in", 1)])
            copier = Copier(logd.bootstrap)
            copying = asyncio.create_task(copier.copy())
            for part in (1, 2):
                await reached(copier, copying, part * NUMBERS // 4)
                await asyncio.to_thread(logd.kill)
                if part == 2:
                    copier.die()
                await asyncio.to_thread(logd.start)
            await reached(copier, copying, 3 * NUMBERS // 4)
            copier.die()
            await copying
            assert copier.restarts
            values_of = await read_committed(client, [TopicPartition("t", n) for n in range(PARTITIONS)])
            for tp, values in values_of.items():
                assert values == [b"%d" % n for n in range(NUMBERS) if n % PARTITIONS == tp.partition]
            assert await committed(client) == NUMBERS

    implicit_from = 2 if version == 2 else 99
    with (
        mock.patch.object(transaction_manager, "IMPLICIT_FROM", implicit_from),
        LogdProcess(tmp_path / "logd", SETTINGS) as logd,
    ):
        run(test(logd))


async def reached(copier: Copier, copying: asyncio.Task[None], position: int) -> None:
    await until(lambda: copier.position >= position or copying.done(), seconds=50)
    if copying.done():
        await copying


@deep
def test_what_is_sent_while_the_broker_is_away_is_committed_once_it_is_back(tmp_path: Path) -> None:
    """Commits that begin while the broker is away are retried until it answers."""

    async def test(logd: LogdProcess) -> None:
        async with Client(logd.bootstrap, **PATIENT) as client:
            await Admin(client).create_topics([NewTopic("t", PARTITIONS)])
            async with TransactionalProducer(client, "x", linger_ms=0) as producer:
                producer.begin()
                await (await producer.send("t", 0, [(0, None, b"before", ())]))
                await asyncio.to_thread(logd.kill)
                await producer.send("t", 1, [(0, None, b"while", ())])
                closing = await producer.commit_soon()
                producer.begin()
                await producer.send("t", 2, [(0, None, b"next", ())])
                with pytest.raises(ConnectionClosed):
                    await client.request(MetadataRequest())
                assert not closing.done()
                await asyncio.to_thread(logd.start)
                await closing
                await producer.commit()
            values_of = await read_committed(client, [TopicPartition("t", n) for n in range(PARTITIONS)])
            assert list(values_of.values()) == [[b"before"], [b"while"], [b"next"]]

    with LogdProcess(tmp_path / "logd", SETTINGS) as logd:
        run(test(logd))
