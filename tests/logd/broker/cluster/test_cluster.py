"""Brokers that share their metadata in ZooKeeper, as clients see them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.topic_partition import TopicPartition
from tests.logd.broker.cluster.brokers import Brokers

TP = TopicPartition("t", 0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def logs(brokers: Brokers) -> set[bytes]:
    return {b"".join(map(bytes, replica.read_all())) for replica in brokers.replicas(TP).values()}


async def test_a_topic_is_replicated_and_survives_its_leader(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path) as brokers:
        port = brokers.controller.broker.endpoint.port
        async with Client(f"127.0.0.1:{port}") as client:
            await Admin(client).create_topics([NewTopic("t", 1, 3)])
        await brokers.until(lambda: len(brokers.replicas(TP)) == 3 and brokers.state(TP) is not None)
        async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
            for n in range(20):
                await (await producer.send("t", 0, [(n, None, b"%d" % n, ())]))
            state = brokers.state(TP)
            assert state is not None and set(state.isr) == {1, 2, 3}
            first = state.leader
            await brokers.stop(first)
            await brokers.until(lambda: (brokers.state(TP) or state).leader not in (first, -1))
            for n in range(20, 40):
                await (await producer.send("t", 0, [(n, None, b"%d" % n, ())]))
        await brokers.start(first)
        await brokers.until(lambda: set((brokers.state(TP) or state).isr) == {1, 2, 3})
        await brokers.until(lambda: len(logs(brokers)) == 1)
        await brokers.until(
            lambda: {replica.high_watermark for replica in brokers.replicas(TP).values()} == {40}
        )
