"""The other Python clients against the fixture's broker, from one test to the next."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from millstream.testing import Broker
from tests.support.depth import deep

with warnings.catch_warnings():  # kafka-python's imports use what Python 3.11 calls deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = pytest.mark.filterwarnings("ignore:read_text is deprecated")

BOTH = pytest.mark.parametrize(
    "in_process", [False, pytest.param(True, marks=deep)], ids=["process", "thread"]
)


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[bool, Broker]]:
    with Broker() as process, Broker(in_process=True) as thread:
        yield {False: process, True: thread}


@deep
@BOTH
@pytest.mark.parametrize("turn", range(2))
def test_kafka_python(brokers: dict[bool, Broker], in_process: bool, turn: int) -> None:
    broker = brokers[in_process]
    broker.clean()
    broker.topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", str(turn).encode()).get(60)
    producer.close()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
        metadata_max_age_ms=2_000,  # a leader that assigned before it had the topic's metadata looks again
    )
    assert next(consumer).value == str(turn).encode()
    consumer.commit()
    consumer.close()
    broker.wait_lag_zero("g", seconds=60)
    broker.assert_exactly_once("orders", key=lambda record: record.text, expected=[str(turn)])


@BOTH
@pytest.mark.parametrize("turn", range(2))
def test_aiokafka(brokers: dict[bool, Broker], in_process: bool, turn: int) -> None:
    broker = brokers[in_process]
    broker.clean()
    broker.topic("orders")

    async def main() -> bytes | None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", str(turn).encode())
        async with AIOKafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
        ) as consumer:
            value: bytes | None = (await consumer.getone()).value
            await consumer.commit()
            await asyncio.to_thread(broker.wait_lag_zero, "g", seconds=60)
            return value

    assert asyncio.run(main()) == str(turn).encode()
