"""Clients from PyPI: produce and consume by assignment, and admin calls."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import admin as confluent_admin

from tests.support.logd_process import LogdProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in a deprecated way
    import kafka
    import kafka.admin

pytestmark = pytest.mark.filterwarnings("ignore:read_text is deprecated")

Name = Callable[..., str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
DEADLINE_SECONDS = 100.0


def messages(count: int) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    """Return messages with keys, values and headers, with nulls among them, and with one large value."""
    plain = [
        (
            None if number % 7 == 0 else b"key-%d" % number,
            None if number % 11 == 0 else b"value-%d" % number * (number % 50 + 1),
            [("h", b"%d" % number), ("null", None)] if number % 3 == 0 else [],
        )
        for number in range(count)
    ]
    return [*plain, (b"large", bytes(range(256)) * 3500, [])]


def confluent_consume(bootstrap: str, topic: str, count: int) -> list[Any]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    messages: list[Any] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(messages) < count and time.monotonic() < deadline:
        messages += consumer.consume(min(500, count - len(messages)), 0.5)
    consumer.close()
    assert all(message.error() is None for message in messages)
    return messages


def confluent_produce(bootstrap: str, topic: str, sent: Iterable[Any], **settings: object) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(error)

    for key, value, headers in sent:
        producer.produce(topic, value, key, partition=0, headers=headers, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert errors == []


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [False, True])
def test_confluent_kafka(logd: LogdProcess, new_name: Name, codec: str, idempotent: bool) -> None:
    topic, sent = new_name(), messages(1000)
    confluent_produce(
        logd.bootstrap, topic, sent, **{"compression.type": codec, "enable.idempotence": idempotent}
    )
    received = confluent_consume(logd.bootstrap, topic, len(sent))
    assert [(message.key(), message.value(), message.headers() or []) for message in received] == sent
    assert [message.offset() for message in received] == list(range(len(sent)))


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_kafka_python_produces_and_confluent_reads(logd: LogdProcess, new_name: Name, codec: str) -> None:
    if codec in ("lz4", "zstd", "snappy"):
        pytest.importorskip({"lz4": "lz4", "zstd": "zstandard", "snappy": "snappy"}[codec])
    topic = new_name()
    producer = kafka.KafkaProducer(
        bootstrap_servers=logd.bootstrap, compression_type=None if codec == "none" else codec
    )
    futures = [producer.send(topic, value=b"v%d" % number, key=b"k", partition=0) for number in range(500)]
    producer.flush(DEADLINE_SECONDS)
    assert [future.get(DEADLINE_SECONDS).offset for future in futures] == list(range(500))
    producer.close()
    received = confluent_consume(logd.bootstrap, topic, 500)
    assert [message.value() for message in received] == [b"v%d" % number for number in range(500)]


def test_confluent_produces_and_kafka_python_reads(logd: LogdProcess, new_name: Name) -> None:
    topic, sent = new_name(), messages(500)
    confluent_produce(logd.bootstrap, topic, sent, **{"compression.type": "gzip"})
    consumer = kafka.KafkaConsumer(bootstrap_servers=logd.bootstrap, auto_offset_reset="earliest")
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    received: list[Any] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(received) < len(sent) and time.monotonic() < deadline:
        for batch in consumer.poll(500).values():
            received += batch
    assert [(record.key, record.value) for record in received] == [(key, value) for key, value, _ in sent]
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: len(sent)}
    consumer.close()


def test_aiokafka(logd: LogdProcess, new_name: Name) -> None:
    import aiokafka

    topic = new_name()

    async def run() -> list[Any]:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=logd.bootstrap, enable_idempotence=True, compression_type="gzip"
        ) as producer:
            for number in range(200):
                await producer.send(topic, b"v%d" % number, partition=0)
            await producer.flush()
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=logd.bootstrap)
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        records = [await asyncio.wait_for(consumer.getone(), DEADLINE_SECONDS) for _ in range(200)]
        await consumer.stop()
        return [record.value for record in records]

    assert asyncio.run(run()) == [b"v%d" % number for number in range(200)]


def test_confluent_admin(logd: LogdProcess, new_name: Name) -> None:
    topic = new_name()
    admin = confluent_admin.AdminClient({"bootstrap.servers": logd.bootstrap})

    def wait(futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        return future.result(DEADLINE_SECONDS)

    new = confluent_admin.NewTopic(topic, 2, 1, config={"retention.ms": "5000"})
    wait(admin.create_topics([new]))
    with pytest.raises(confluent_kafka.KafkaException, match="already exists"):
        wait(admin.create_topics([new]))
    wait(admin.create_partitions([confluent_admin.NewPartitions(topic, 3)]))
    assert len(admin.list_topics(topic, DEADLINE_SECONDS).topics[topic].partitions) == 3

    resource = confluent_admin.ConfigResource(confluent_admin.ConfigResource.Type.TOPIC, topic)
    assert wait(admin.describe_configs([resource]))["retention.ms"].value == "5000"
    resource.add_incremental_config(
        confluent_admin.ConfigEntry(
            "retention.ms",
            "6000",
            incremental_operation=confluent_admin.AlterConfigOpType.SET,
        )
    )
    wait(admin.incremental_alter_configs([resource]))
    assert wait(admin.describe_configs([resource]))["retention.ms"].value == "6000"

    confluent_produce(logd.bootstrap, topic, [(b"k", b"v", [])] * 10)
    partition = confluent_kafka.TopicPartition(topic, 0)
    latest = wait(admin.list_offsets({partition: confluent_admin.OffsetSpec.latest()}))
    assert latest.offset == 10
    partition.offset = 4
    assert wait(admin.delete_records([partition])).low_watermark == 4

    cluster = admin.describe_cluster(include_authorized_operations=True).result(DEADLINE_SECONDS)
    assert cluster.cluster_id in logd.log
    assert [node.id for node in cluster.nodes] == [1]
    assert cluster.authorized_operations
    wait(admin.delete_topics([topic]))


def test_kafka_python_admin(logd: LogdProcess, new_name: Name) -> None:
    topic = new_name()
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=logd.bootstrap)
    admin.create_topics([kafka.admin.NewTopic(topic, num_partitions=2, replication_factor=1)])
    assert topic in admin.list_topics()
    admin.create_partitions({topic: kafka.admin.NewPartitions(4)})
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
    assert admin.describe_configs([resource])
    assert admin.describe_cluster()
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()
