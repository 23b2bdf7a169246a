"""Consumers that notice what a power loss took from under them (KIP-320).

They have read ten records. The machine loses its power and the last three with it; others take their
offsets. A consumer that does not compare leader epochs goes on at offset 10 as if nothing had been.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_client import BatchProducer, Client
from kafka_client import Consumer as OurConsumer
from kafka_client.records import iter_batches
from tests.interop.clients.base import SECONDS
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

LEFT = 7


@pytest.fixture
def logd(tmp_path: Path) -> Iterator[LogdProcess]:
    """With ten records, `old 0` to `old 9`."""
    with LogdProcess(tmp_path) as logd:
        create_topic(logd, "t", {"retention.ms": "-1"})
        put(logd, "old", 10)
        yield logd


def put(logd: LogdProcess, text: str, count: int) -> None:
    with RawClient(logd.port) as client:
        for number in range(count):
            assert client.produce("t", [(1, None, f"{text} {number}".encode(), ())]).error_code == 0


def lose_power(logd: LogdProcess) -> None:
    """Remove all but the first records, and write five new ones."""
    logd.kill()
    (path,) = (logd.folder / "data" / "t-0").glob("*.log")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(sum(header.size for _, header in list(iter_batches(data))[:LEFT]))
    logd.start()
    put(logd, "new", 5)


def librdkafka(logd: LogdProcess, reset: str) -> Consumer:
    """Return a consumer that has read all ten records."""
    consumer = Consumer(
        {
            "bootstrap.servers": logd.bootstrap,
            "group.id": "g",
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 100,
            "metadata.recovery.strategy": "none",
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    assert read(consumer, 10) == [f"old {number}" for number in range(10)]
    return consumer


def read(consumer: Consumer, count: int) -> list[str]:
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(SECONDS)
        assert message is not None, f"nothing came behind {values}"
        if message.error() is None:
            values.append(message.value().decode())
        elif message.error().code() in (KafkaError._LOG_TRUNCATION, KafkaError._AUTO_OFFSET_RESET):
            raise KafkaException(message.error())
    return values


@deep
def test_librdkafka_is_told(logd: LogdProcess) -> None:
    """Truncation is reported to an application with auto.offset.reset=error."""
    consumer = librdkafka(logd, "error")
    lose_power(logd)
    with pytest.raises(KafkaException, match=r"(?i)truncat"):
        read(consumer, 5)
    consumer.close()


@deep
def test_librdkafka_reads_what_was_written_instead(logd: LogdProcess) -> None:
    consumer = librdkafka(logd, "latest")
    lose_power(logd)
    assert read(consumer, 5) == [f"new {number}" for number in range(5)]
    consumer.close()


@deep
async def test_our_own_consumer_goes_on_in_the_new_epoch(logd: LogdProcess) -> None:
    """After a crash that took nothing it is fenced, learns of the epoch, and goes on where it was; its group
    commits in a partition that is in a new epoch itself.
    """

    async def values(consumer: OurConsumer, count: int) -> list[bytes | None]:
        values_so_far: list[bytes | None] = []
        while len(values_so_far) < count:
            async with asyncio.timeout(SECONDS):
                for fetched in await consumer.fetch():
                    values_so_far += [record[3] for record in fetched.records()]
        return values_so_far

    async with (
        Client(logd.bootstrap) as client,
        OurConsumer(client, "g", auto_offset_reset="earliest") as consumer,
        BatchProducer(client) as producer,
    ):
        await consumer.subscribe(["t"])
        assert len(await values(consumer, 10)) == 10
        for text in (b"a", b"b"):
            await consumer.commit()
            await asyncio.to_thread(logd.kill)
            await asyncio.to_thread(logd.start)
            await producer.send("t", 0, [(1, None, text, ())])
            assert await values(consumer, 1) == [text]
