"""A broker's metrics by Kafka's names, after known requests of its clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_client import (
    Admin,
    BatchFetcher,
    BatchProducer,
    Client,
    NewTopic,
    TopicPartition,
    TransactionalProducer,
)
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.metrics.exposition import exposition
from kafka_client.wire import encode_request
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from logd.broker.broker import Broker
from logd.broker.broker_metrics import BrokerMetrics
from logd.config.broker import BrokerConfig
from logd.server.server import Server
from tests.support.depth import deep
from tests.support.documented_metrics import check_documented
from tests.support.waiting import until


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Broker]:
    broker = Broker(BrokerConfig.of({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}))
    server = Server(broker)
    server.bind()
    await broker.start()
    BrokerMetrics(broker).add_to(broker.metrics)
    server.accept()
    yield broker
    await server.close()
    await broker.stop()


async def test_its_numbers_are_those_of_what_was_done(tmp_path: Path) -> None:
    async with running(tmp_path) as broker, Client(f"127.0.0.1:{broker.endpoint.port}") as client:
        await Admin(client).create_topics([NewTopic("t", 3)])
        async with BatchProducer(client) as producer, BatchFetcher(client) as fetcher:
            await (await producer.send("t", 1, [(0, None, b"v", ())] * 10))
            fetcher.add(TopicPartition("t", 1), 0)
            assert await fetcher.fetch()
            values = broker.metrics.values
            assert values("ReplicaManager")["PartitionCount"] == 3
            assert values("ReplicaManager")["ProducerIdCount"] == 1
            assert values("KafkaController")["GlobalTopicCount"] == 1
            assert values("Log", topic="t", partition="1")["LogEndOffset"] == 10
            assert values("Log", topic="t", partition="1")["Size"] > 60
            assert values("Log", topic="t", partition="0")["LogEndOffset"] == 0
            assert values("Log")["NumLogSegments"] == 3
            assert values("LogManager")["OfflineLogDirectoryCount"] == 0
            assert values("RequestMetrics", request="Produce")["Requests-total"] == 1
            assert values("RequestMetrics", request="CreateTopics")["Requests-total"] == 1
            assert values("RequestMetrics", request="Fetch")["Requests-total"] >= 1
            assert values("listener")["connections"] >= 2
            assert values("jobs")["running_max"] > 0
            assert values("open-files")["files"] >= 1


async def test_fetches_that_wait_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as broker, Client(f"127.0.0.1:{broker.endpoint.port}") as client:
        await Admin(client).create_topics([NewTopic("t", 1)])

        def waiting() -> float:
            return broker.metrics.values("DelayedOperationPurgatory", delayedOperation="Fetch")[
                "PurgatorySize"
            ]

        async with BatchProducer(client) as producer:
            async with BatchFetcher(client, fetch_max_wait_ms=60_000) as fetcher:
                assert waiting() == 0
                fetcher.add(TopicPartition("t", 0), 0)
                await until(lambda: waiting() == 1)
                assert broker.metrics.values("listener")["connections_waiting"] == 1
                await (await producer.send("t", 0, [(0, None, b"v", ())]))
                assert await fetcher.fetch()
                await until(lambda: waiting() == 1)
            await until(lambda: waiting() == 0)
            assert broker.metrics.values("listener")["connections_waiting"] == 0


async def test_transactions_are_told_until_their_markers_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as broker, Client(f"127.0.0.1:{broker.endpoint.port}") as client:
        await Admin(client).create_topics([NewTopic("t", 1)])

        def values() -> Mapping[str, float]:
            return broker.metrics.values("transactions")

        async with TransactionalProducer(client, "id") as producer:
            assert values()["transactional_ids"] == 1
            assert values()["finishing"] == values()["markers_queued"] == 0
            producer.begin()
            await producer.send("t", 0, [(0, None, b"v", ())])
            with monkeypatch.context() as patched:
                patched.setattr(broker.transactions.markers, "write", offline)
                await producer.commit()
                await until(lambda: values()["finishing"] == 1)
            await until(lambda: values()["finishing"] == 0)


def offline(*_: object, **__: object) -> NoReturn:
    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)


@deep
async def test_a_client_that_does_not_read_is_told_of_and_stays_within_its_bound(tmp_path: Path) -> None:
    async with running(tmp_path) as broker, Client(f"127.0.0.1:{broker.endpoint.port}") as client:
        await Admin(client).create_topics([NewTopic("t", 500)])
        request = encode_request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9, 1, "raw")

        def values() -> Mapping[str, float]:
            return broker.metrics.values("listener")

        assert values()["connections_blocked"] == values()["unsent_bytes"] == 0
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.endpoint.port)
        writer.write(request)
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        writer.write(request * 2000)  # of 20 MB of answers, more than the kernel's buffers take
        await until(lambda: values()["connections_blocked"] == 1)
        served = broker.metrics.values("RequestMetrics", request="Metadata")["Requests-total"]
        assert 0 < values()["unsent_bytes"] <= values()["connection_unsent_bytes_max"] + 4 + size
        await Admin(client).list_topics()  # others are served
        now = broker.metrics.values("RequestMetrics", request="Metadata")["Requests-total"]
        assert now - served < 2000
        for _ in range(2000):
            await reader.readexactly(4 + size)
        await until(lambda: values()["connections_blocked"] == values()["unsent_bytes"] == 0)
        writer.write(request * 2000)
        await until(lambda: values()["connections_blocked"] == 1)
        writer.close()
        await until(lambda: values()["connections_blocked"] == values()["unsent_bytes"] == 0)


async def test_prometheus_reads_all_of_them(tmp_path: Path) -> None:
    async with running(tmp_path) as broker, Client(f"127.0.0.1:{broker.endpoint.port}") as client:
        await Admin(client).create_topics([NewTopic("a.b", 2)])
        families = {
            family.name: family
            for family in text_string_to_metric_families(exposition(broker.metrics).decode())
        }
        check_documented(
            broker.metrics,
            "ReplicaManager",
            "KafkaController",
            "LogManager",
            "Log",
            "FetchSessionCache",
            "BrokerTopicMetrics",
            "RequestMetrics",
            "DelayedOperationPurgatory",
            "receive-buffers",
            "listener",
            "metadata-answers",
            "cold-reads",
            "batch-validation",
            "fetch-sessions",
            "flusher",
            "compaction",
            "moves",
            "truncations",
            "open-files",
            "disk-work",
            "deletions",
            "transactions",
            "jobs",
        )
        assert len(families["kafka_log_log_logendoffset"].samples) == 2
        assert families["kafka_log_log_logendoffset"].samples[0].labels["topic"] == "a.b"
        assert families["kafka_server_replicamanager_partitioncount"].samples[0].value == 2
        assert families["kafka_network_requestmetrics_requests"].type == "counter"
