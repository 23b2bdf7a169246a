"""Consumers that fetch from a replica in their rack (KIP-392): three brokers in three racks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as RdPartition

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TransactionalProducer
from kafka_client.errors import ConfigError, ErrorCode
from kafka_client.topic_partition import TopicPartition
from logd.broker.partition.partition import Partition
from logd.config.load import from_properties
from logd.config.replication import LEADER_ONLY, RACK_AWARE
from tests.logd.broker.cluster.brokers import Brokers
from tests.support import depth, java
from tests.support.raw_client import RawClient

TP = TopicPartition("t", 0)
LEADER, NEAR, OTHER = 1, 2, 3
RACK = f"rack-{NEAR}"


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


@asynccontextmanager
async def racks(zookeeper: str, folder: Path, **settings: str) -> AsyncIterator[Brokers]:
    """Start brokers with a rack each, and a topic led by the first, with a replica on each broker."""
    settings = {"replica.selector.class": RACK_AWARE, "broker.rack": "rack-{id}", **settings}
    async with Brokers(zookeeper, folder, **settings) as brokers:
        async with Client(brokers.bootstrap) as client:
            assignment = {0: [LEADER, NEAR, OTHER]}
            await Admin(client).create_topics([NewTopic("t", assignments=assignment)])
        await brokers.until(lambda: len(brokers.replicas(TP)) == 3 and brokers.state(TP) is not None)
        yield brokers


def bytes_out(brokers: Brokers) -> dict[int, float]:
    """Return the bytes of records sent to consumers, by broker, from its metrics."""
    return {
        id_: each.broker.metrics.values("BrokerTopicMetrics")["BytesOutPerSec-total"]
        for id_, each in brokers.up.items()
    }


async def produce(brokers: Brokers, *values: bytes) -> None:
    async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
        for value in values:
            await (await producer.send("t", 0, [(1000, None, value, ())]))


async def abort_and_commit(brokers: Brokers) -> None:
    """Write two transactions, of which the first is aborted."""
    async with Client(brokers.bootstrap) as client, TransactionalProducer(client, "txn") as producer:
        producer.begin()
        await (await producer.send("t", 0, [(1000, None, b"aborted", ())]))
        await producer.abort()
        producer.begin()
        await producer.send("t", 0, [(1000, None, b"committed", ())])
        await producer.commit()


async def values_of(fetcher: BatchFetcher, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    async with asyncio.timeout(60):
        while len(values) < count:
            for fetched in await fetcher.fetch():
                values += [record[3] for record in fetched.records()]
    return values


@depth.deep
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_the_follower_of_the_rack_serves_until_it_is_lost(
    zookeeper: str, tmp_path: Path, isolation: Any
) -> None:
    async with racks(zookeeper, tmp_path) as brokers, Client(brokers.bootstrap) as client:
        await produce(brokers, b"a", b"b")
        await abort_and_commit(brokers)
        expected = [b"a", b"b", b"aborted", b"committed"]
        if isolation == "read_committed":
            expected.remove(b"aborted")
        async with BatchFetcher(client, client_rack=RACK, isolation_level=isolation) as fetcher:
            fetcher.add(TP, 0)
            assert await values_of(fetcher, len(expected)) == expected
            await produce(brokers, b"c")
            assert await values_of(fetcher, 1) == [b"c"]
            sent = bytes_out(brokers)
            assert sent[NEAR] > 0 and sent[LEADER] == sent[OTHER] == 0
            await brokers.stop(NEAR)
            await produce(brokers, b"d")
            assert await values_of(fetcher, 1) == [b"d"]
            assert bytes_out(brokers)[LEADER] > 0


@depth.sample(1)
@pytest.mark.parametrize("settings", [{"replica.selector.class": LEADER_ONLY}, {"broker.rack": RACK}])
async def test_the_leader_serves_unless_another_rack_is_closer(
    zookeeper: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    """Consumers read from the leader without a replica selector, or where the leader is in their rack."""
    async with racks(zookeeper, tmp_path, **settings) as brokers, Client(brokers.bootstrap) as client:
        await produce(brokers, b"a")
        async with BatchFetcher(client, client_rack=RACK) as fetcher:
            fetcher.add(TP, 0)
            assert await values_of(fetcher, 1) == [b"a"]
        sent = bytes_out(brokers)
        assert sent[LEADER] > 0 and sent[NEAR] == sent[OTHER] == 0


def test_another_class_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"replica\.selector\.class.*RackAwareReplicaSelector"):
        from_properties({"replica.selector.class": "org.example.Mine"})


async def goes_on_with_the_leader(brokers: Brokers, reading: Awaitable[list[bytes]]) -> None:
    """Check a reader of four committed records: the follower serves three, then stops, and the leader serves
    the last.
    """
    await produce(brokers, b"a", b"b")
    await abort_and_commit(brokers)
    task = asyncio.ensure_future(reading)
    await brokers.until(lambda: task.done() or bytes_out(brokers)[NEAR] > 0)
    assert not task.done() and bytes_out(brokers)[LEADER] == 0
    await brokers.stop(NEAR)
    await produce(brokers, b"c")
    assert await task == [b"a", b"b", b"committed", b"c"]
    assert bytes_out(brokers)[LEADER] > 0


def read_by_librdkafka(bootstrap: str) -> list[bytes]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "client.rack": RACK,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([RdPartition("t", 0, 0)])
        values: list[bytes] = []
        while len(values) < 4:
            message = consumer.poll(60)
            assert message is not None and message.error() is None, message and message.error()
            values.append(message.value() or b"")
        return values
    finally:
        consumer.close()


def read_by_java(bootstrap: str) -> list[bytes]:
    done = java.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "t", "--partition", "0"),
        *("--offset", "earliest", "--max-messages", "4", "--timeout-ms", "60000"),
        *("--command-property", f"client.rack={RACK}"),
        *("--command-property", "isolation.level=read_committed"),
    )
    return done.stdout.encode().split()


@depth.deep
@pytest.mark.parametrize("read", [read_by_librdkafka, pytest.param(read_by_java, marks=java.needs_kafka)])
async def test_other_clients(zookeeper: str, tmp_path: Path, read: Callable[[str], list[bytes]]) -> None:
    async with racks(zookeeper, tmp_path, offsets_topic_replication_factor="1") as brokers:
        await goes_on_with_the_leader(brokers, asyncio.to_thread(read, brokers.bootstrap))


async def test_followers_hear_at_once_how_far_is_committed(zookeeper: str, tmp_path: Path) -> None:
    """Followers learn of a new high watermark at once.

    Their fetches waited for the next record or replica.fetch.wait.max.ms, and consumers with them.
    """
    settings = {"replica_fetch_wait_max_ms": "3600000", "replica_lag_time_max_ms": "7200000"}
    async with racks(zookeeper, tmp_path, **settings) as brokers:
        for n in range(3):
            await produce(brokers, b"%d" % n)
            await brokers.until(
                lambda n=n: {replica.high_watermark for replica in brokers.replicas(TP).values()} == {n + 1}  # type: ignore[misc]
            )


@depth.deep
async def test_what_a_follower_answers(zookeeper: str, tmp_path: Path) -> None:
    async with racks(zookeeper, tmp_path) as brokers:
        await produce(brokers, b"a", b"b")
        await brokers.until(
            lambda: {replica.high_watermark for replica in brokers.replicas(TP).values()} == {2}
        )
        near = brokers.replicas(TP)[NEAR]

        def ask(offset: int, version: int = 12) -> Any:
            with RawClient(brokers.up[NEAR].broker.endpoint.port) as client:
                return client.fetch("t", offset, version=version)

        async def code(offset: int, version: int = 12) -> int:
            return (await asyncio.to_thread(ask, offset, version)).error_code

        assert await code(0) == await code(0, version=11) == await code(2) == 0
        assert await code(0, version=10) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await code(3) == ErrorCode.OFFSET_OUT_OF_RANGE
        near.role.core.leader_high_watermark = 3  # type: ignore[union-attr]
        assert await code(3) == ErrorCode.OFFSET_NOT_AVAILABLE
        assert await code(4) == ErrorCode.OFFSET_OUT_OF_RANGE
        near.role.core.leader_high_watermark = -1  # type: ignore[union-attr]
        assert await code(4) == ErrorCode.OFFSET_NOT_AVAILABLE
        hidden(near)
        answer = await asyncio.to_thread(ask, 0)
        assert (answer.error_code, answer.high_watermark, bytes(answer.records or b"")) == (0, 0, b"")


def hidden(partition: Partition) -> None:
    """Set the high watermark to 0, as if no record were known to be committed."""
    partition.high_watermark = 0
