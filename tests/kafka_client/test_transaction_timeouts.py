"""Transactions that last longer than their timeout: the coordinator aborts them, the producer hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition, TransactionalProducer
from kafka_client.errors import AbortableTransactionError, ProducerFenced, TransactionError
from kafka_client.producer import transaction_manager
from tests.kafka_client.running import run
from tests.kafka_client.transaction_history import read_committed
from tests.support.logd_process import LogdProcess

SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 10}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    folder: Path = tmp_path_factory.mktemp("quick")
    with LogdProcess(folder, SETTINGS) as process:
        yield process


async def time_out(client: Client, producer: TransactionalProducer, tp: TopicPartition) -> None:
    """Write a record, and wait until nothing is open any more; on a slow machine it comes too late itself."""
    producer.begin()
    await asyncio.wait([await producer.send(tp.topic, tp.partition, [(0, None, b"too late", ())])])
    assert await read_committed(client, [tp]) == {tp: []}


async def send_and_commit(producer: TransactionalProducer, tp: TopicPartition) -> None:
    await producer.send(tp.topic, tp.partition, [(0, None, b"later", ())])
    await producer.commit()


async def test_version_2_aborts_and_goes_on(quick: LogdProcess) -> None:
    async with Client(quick.bootstrap) as client:
        await Admin(client).create_topics([NewTopic("two", 1)])
        tp = TopicPartition("two", 0)
        async with TransactionalProducer(client, "two", transaction_timeout_ms=50) as producer:
            await time_out(client, producer, tp)
            with pytest.raises(AbortableTransactionError):
                await send_and_commit(producer, tp)
            await producer.abort()
        async with TransactionalProducer(client, "two") as producer:
            producer.begin()
            await producer.send("two", 0, [(0, None, b"next", ())])
            await producer.commit()
        assert await read_committed(client, [tp]) == {tp: [b"next"]}


def test_version_1_is_fenced(quick: LogdProcess) -> None:
    async def test() -> None:
        async with Client(quick.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("one", 1)])
            tp = TopicPartition("one", 0)
            async with TransactionalProducer(client, "one", transaction_timeout_ms=50) as producer:
                await time_out(client, producer, tp)
                with pytest.raises(TransactionError):
                    await send_and_commit(producer, tp)
                with pytest.raises(ProducerFenced):
                    await producer.abort()
            assert await read_committed(client, [tp]) == {tp: []}

    with mock.patch.object(transaction_manager, "IMPLICIT_FROM", 99):
        run(test())
