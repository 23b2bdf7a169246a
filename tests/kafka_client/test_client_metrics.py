"""Producers, fetchers and group members report metrics by Kafka's names that agree with what they did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_client import (
    Admin,
    BatchFetcher,
    BatchProducer,
    Client,
    Consumer,
    NewTopic,
    TopicPartition,
    TransactionalProducer,
)
from kafka_client.errors import KafkaError
from kafka_client.metrics.exposition import exposition
from kafka_client.metrics.metrics import Metrics
from tests.support.documented_metrics import check_documented
from tests.support.waiting import until

RECORDS = [(0, None, b"value", ())] * 10


async def test_numbers_are_those_of_what_was_done(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    tp = TopicPartition(topic, 0)
    metrics = Metrics()
    async with Client(bootstrap, client_id="me", metrics=metrics) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with BatchProducer(client) as producer:
            await (await producer.send(topic, 0, RECORDS))
            await (await producer.send(topic, 0, RECORDS))
            sent = metrics.values("producer-metrics")
            assert sent["record-send-total"] == 20
            assert sent["record-retry-total"] == 0
            assert sent["request-total"] == 2
            assert sent["batch-size-max"] * 2 == sent["outgoing-byte-total"]
            assert sent["request-latency-avg"] <= sent["request-latency-max"]
            assert sent["buffer-available-bytes"] == sent["buffer-total-bytes"] == 33_554_432
        assert not metrics.values("producer-metrics"), "it is closed"

        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp, 0)
            first = await fetcher.fetch(max_records=10)
            fetched = metrics.values("consumer-fetch-manager-metrics", client_id="me-fetch-3")
            of_one = metrics.values("consumer-fetch-manager-metrics", topic=topic, partition="0")
            assert [part.record_count for part in first] == [10]
            assert fetched["records-consumed-total"] == 10
            assert fetched["bytes-consumed-total"] == len(first[0].buffer) == sent["batch-size-max"]
            assert fetched["records-lag-max"] == of_one["records-lag"] == 10
            check_documented(metrics, "consumer-fetch-manager-metrics")
            assert b"kafka_consumer_consumer_fetch_manager_metrics_records_lag{" in exposition(metrics)
            check_documented(metrics, "fetch-buffer", "connections")
            assert metrics.values("connections")["connections"] > 0
            assert metrics.values("fetch-buffer")["buffered_bytes"] > 0
        assert {name.type for name, _ in metrics.read()} == {"connections"}
    assert not list(metrics.read()), "everything is closed"


async def test_records_that_were_given_up(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    async with Client(bootstrap, missing_topic_wait_ms=100) as client, BatchProducer(client) as producer:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        await (await producer.send(topic, 0, RECORDS[:4]))
        lost = await producer.send(new_name("nowhere"), 0, RECORDS[:3])
        with pytest.raises(KafkaError):
            await lost
        values = client.metrics.values("producer-metrics")
        assert (values["record-send-total"], values["record-error-total"]) == (7, 3)
        assert (values["waiting-threads"], values["bufferpool-wait-time-ns-total"]) == (0, 0)


async def test_who_waits_for_room_is_told(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with BatchProducer(client, buffer_memory=500, max_request_size=500, batch_size=500) as producer:
            value = [(0, None, bytes(400), ())]
            sends = [asyncio.create_task(producer.send(topic, 0, value)) for _ in range(5)]
            await until(lambda: client.metrics.values("producer-metrics")["waiting-threads"] > 0)
            await asyncio.gather(*sends)
            await producer.flush()
            values = client.metrics.values("producer-metrics")
            assert values["waiting-threads"] == 0
            assert values["bufferpool-wait-time-ns-total"] > 0
            assert values["flush-time-ns-total"] > 0


async def test_transactions_are_timed(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with TransactionalProducer(client, new_name("id")) as producer:
            values = client.metrics.values("producer-metrics")
            assert values["txn-init-time-ns-total"] > 0
            assert values["txn-commit-time-ns-total"] == values["txn-abort-time-ns-total"] == 0
            producer.begin()
            await producer.send(topic, 0, RECORDS)
            await producer.commit()
            producer.begin()
            await producer.send(topic, 0, RECORDS)
            await producer.abort()
            values = client.metrics.values("producer-metrics")
            assert values["txn-commit-time-ns-total"] > 0
            assert values["txn-abort-time-ns-total"] > 0
            assert values["txn-send-offsets-time-ns-total"] == 0


async def test_two_of_one_client_are_told_apart(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    async with Client(bootstrap, client_id="me") as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with BatchProducer(client) as one, BatchProducer(client) as other:
            await (await one.send(topic, 0, RECORDS))
            await (await other.send(topic, 0, RECORDS[:3]))
            check_documented(client.metrics, "producer-metrics")
            values = {
                dict(name.tags)["client-id"]: value
                for name, value in client.metrics.read()
                if name.name == "record-send-total"
            }
            assert sorted(values.values()) == [3, 10]


async def test_two_clients_of_one_registry_are_told_apart(bootstrap: str) -> None:
    metrics = Metrics()
    async with Client(bootstrap, metrics=metrics) as one, Client(bootstrap, metrics=metrics) as other:
        async with BatchProducer(one), BatchProducer(other), BatchFetcher(one), BatchFetcher(other):
            names = [name for name, _ in metrics.read()]
            assert len(set(names)) == len(names) > 20


async def test_a_member_tells_of_its_group(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic, group = new_name("metrics"), new_name("group")
    async with Client(bootstrap) as client, Client(bootstrap) as other:
        await Admin(client).create_topics([NewTopic(topic, 3)])

        def values() -> dict[str, float]:
            return client.metrics.values("consumer-coordinator-metrics")

        async with Consumer(client, group, heartbeat_interval_ms=50) as consumer:
            await consumer.subscribe([topic])
            assert (values()["rebalance-total"], values()["last-rebalance-seconds-ago"]) == (0, -1)
            await consumer.wait_assigned()
            check_documented(client.metrics, "consumer-coordinator-metrics")
            assert values()["assigned-partitions"] == 3
            assert values()["rebalance-total"] == values()["join-total"] == values()["sync-total"] == 1
            assert values()["failed-rebalance-total"] == 0
            assert values()["rebalance-latency-max"] >= values()["join-time-max"] > 0
            assert values()["rebalance-latency-total"] == values()["rebalance-latency-max"]
            assert values()["last-rebalance-seconds-ago"] >= 0
            await until(lambda: values()["heartbeat-total"] >= 2)
            assert values()["last-heartbeat-seconds-ago"] >= 0
            await consumer.commit({TopicPartition(topic, 0): 0})
            assert values()["commit-total"] == 1
            assert values()["commit-latency-avg"] > 0
            async with Consumer(other, group) as second:
                await second.subscribe([topic])
                await until(lambda: values()["rebalance-total"] >= 2)
                assert values()["partition-revoked-latency-max"] >= 0
                assert values()["assigned-partitions"] < 3
        assert not values(), "it is closed"
