"""What producers and fetchers tell of themselves by Kafka's names, beside what they did."""

from __future__ import annotations

from collections.abc import Callable

from logd.client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from logd.metrics.exposition import exposition
from logd.metrics.metrics import Metrics
from tests.logd.client.running import run
from tests.support.documented_metrics import check_documented

RECORDS = [(0, None, b"value", ())] * 10


def test_numbers_are_those_of_what_was_done(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")
    tp = TopicPartition(topic, 0)

    async def main() -> None:
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
                fetched = metrics.values("consumer-fetch-manager-metrics", client_id="me-fetch-2")
                of_one = metrics.values("consumer-fetch-manager-metrics", topic=topic, partition="0")
                assert [part.record_count for part in first] == [10]
                assert fetched["records-consumed-total"] == 10
                assert fetched["bytes-consumed-total"] == len(first[0].buffer) == sent["batch-size-max"]
                assert fetched["records-lag-max"] == of_one["records-lag"] == 10
                check_documented(metrics, "consumer-fetch-manager-metrics")
                assert b"kafka_consumer_consumer_fetch_manager_metrics_records_lag{" in exposition(metrics)
            assert not list(metrics.read()), "everything is closed"

    run(main())


def test_two_of_one_client_are_told_apart(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("metrics")

    async def main() -> None:
        async with Client(bootstrap, client_id="me") as client:
            await Admin(client).create_topics([NewTopic(topic, 1)])
            async with BatchProducer(client) as one, BatchProducer(client) as other:
                await (await one.send(topic, 0, RECORDS))
                await (await other.send(topic, 0, RECORDS[:3]))
                check_documented(client.metrics, "producer-metrics")
                told = {
                    dict(name.tags)["client-id"]: value
                    for name, value in client.metrics.read()
                    if name.name == "record-send-total"
                }
                assert sorted(told.values()) == [3, 10]

    run(main())


def test_two_clients_of_one_registry_are_told_apart(bootstrap: str) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with Client(bootstrap, metrics=metrics) as one, Client(bootstrap, metrics=metrics) as other:
            async with BatchProducer(one), BatchProducer(other), BatchFetcher(one), BatchFetcher(other):
                told = [name for name, _ in metrics.read()]
                assert len(set(told)) == len(told) > 20

    run(main())
