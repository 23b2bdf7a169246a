from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as ForeignConsumer
from confluent_kafka import Producer as ForeignProducer
from confluent_kafka import TopicPartition as ForeignTopicPartition

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client.records import Codec, NewRecord
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

Name = Callable[[str], str]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS: list[NewRecord] = [
    (1_600_000_000_000, b"key", b"value " * 50, ()),
    (1_600_000_000_001, None, b"no key", (("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None))),
    (1_600_000_000_002, b"no value", None, ()),
    (1_600_000_000_003, b"", b"", (("ünï", "cödé".encode()),)),
]


def read_by_librdkafka(bootstrap: str, topic: str, count: int, size: int = 1_000_000) -> list[NewRecord]:
    consumer = ForeignConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "fetch.message.max.bytes": size,
        }
    )
    consumer.assign([ForeignTopicPartition(topic, 0, 0)])
    records: list[NewRecord] = []
    deadline = time.monotonic() + 100
    try:
        while len(records) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                headers: Any = tuple(message.headers() or ())
                records.append((message.timestamp()[1], message.key(), message.value(), headers))
    finally:
        consumer.close()
    return records


async def read_by_us(client: Client, topic: str, count: int) -> list[NewRecord]:
    records: list[NewRecord] = []
    async with BatchFetcher(client) as fetcher:
        fetcher.add(TopicPartition(topic, 0), 0)
        while len(records) < count:
            for fetched in await fetcher.fetch():
                records += [record[1:] for record in fetched.records()]
    return records


@pytest.mark.parametrize("codec", CODECS)
async def test_librdkafka_reads_what_we_write(bootstrap: str, new_name: Name, codec: Any) -> None:
    topic = new_name(codec)
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1, {"retention.ms": "-1"})])
        async with BatchProducer(client, compression_type=codec) as producer:
            for _ in range(3):
                await producer.send(topic, 0, RECORDS)
        assert await asyncio.to_thread(read_by_librdkafka, bootstrap, topic, 12) == RECORDS * 3
        assert await read_by_us(client, topic, 12) == RECORDS * 3


@pytest.mark.parametrize("codec", CODECS)
async def test_we_read_what_librdkafka_writes(bootstrap: str, new_name: Name, codec: str) -> None:
    def write(topic: str) -> None:
        producer = ForeignProducer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50}
        )
        for timestamp, key, value, headers in RECORDS:
            producer.produce(topic, value, key, 0, timestamp=timestamp, headers=list(headers))
        assert producer.flush(100) == 0

    topic = new_name(codec)
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1, {"retention.ms": "-1"})])
        await asyncio.to_thread(write, topic)
        assert await read_by_us(client, topic, 4) == RECORDS
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TopicPartition(topic, 0), 0)
            batches = (await fetcher.fetch())[0].batches()
            # librdkafka may cut a batch short, and leaves one as it is that would not get smaller.
            assert {header.codec for header, _ in batches} | {Codec.NONE} == {
                Codec.named(codec),
                Codec.NONE,
            }


async def test_batches_pass_from_topic_to_topic_still_compressed(bootstrap: str, new_name: Name) -> None:
    source, target = new_name("source"), new_name("target")
    async with Client(bootstrap) as client:
        keep = {"retention.ms": "-1"}
        await Admin(client).create_topics([NewTopic(source, 1, 1, keep), NewTopic(target, 1, 1, keep)])
        async with BatchProducer(client, compression_type="zstd") as producer:
            for _ in range(5):
                await (await producer.send(source, 0, RECORDS))
            async with BatchFetcher(client) as fetcher:
                fetcher.add(TopicPartition(source, 0), 0)
                while fetcher.position(TopicPartition(source, 0)) < 20:
                    for fetched in await fetcher.fetch():
                        for _, batch in fetched.batches():
                            await producer.send_batch(target, 0, batch)
        assert await asyncio.to_thread(read_by_librdkafka, bootstrap, target, 20) == RECORDS * 5


@deep
async def test_large_messages(bootstrap: str, new_name: Name) -> None:
    topic, size = new_name("large"), 9_000_000
    value = bytes(range(256)) * (size // 256)
    async with Client(bootstrap) as client:
        configs = {"max.message.bytes": "10000000"}
        await Admin(client).create_topics([NewTopic(topic, 1, 1, configs)])
        async with BatchProducer(client, max_request_size=10_000_000) as producer:
            for _ in range(3):
                await producer.send(topic, 0, [(1_700_000_000_000, None, value, ())])
        assert [record[2] for record in await read_by_us(client, topic, 3)] == [value] * 3


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_every_way_of_acknowledging(bootstrap: str, new_name: Name, acks: int) -> None:
    topic = new_name("acks")
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        async with BatchProducer(client, acks=acks, enable_idempotence=False) as producer:
            offset = await (await producer.send(topic, 0, [(0, None, b"v", ())]))
            assert offset == (None if acks == 0 else 0)
            assert [record[2] for record in await read_by_us(client, topic, 1)] == [b"v"]


async def test_every_record_once_though_the_broker_is_killed_again_and_again(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        async with Client(logd.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", 1, 1)])
            async with BatchProducer(client, linger_ms=0) as producer:
                sent: list[asyncio.Future[int | None]] = []

                async def send_on() -> None:
                    while True:
                        records: list[NewRecord] = [(0, None, b"%d" % len(sent), ())] * 20
                        sent.append(await producer.send("t", 0, records))
                        await asyncio.sleep(0.001)

                sending = asyncio.create_task(send_on())
                for _ in range(3):
                    acked = sum(future.done() for future in sent)
                    await until(lambda acked=acked: sum(f.done() for f in sent) > acked + 50)  # type: ignore[misc]
                    await asyncio.to_thread(logd.kill)
                    await asyncio.to_thread(logd.start)
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                for future in sent:
                    await future
            read = await read_by_us(client, "t", 20 * len(sent))
            assert [record[2] for record in read] == [b"%d" % (n // 20) for n in range(20 * len(sent))]
