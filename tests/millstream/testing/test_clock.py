"""The effects of time, by a clock that the test advances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer

from kafka_client import Admin, Client
from millstream.testing import Broker
from tests.support.depth import deep
from tests.support.waiting import wait_for

HOUR_MS = 3_600_000


@pytest.fixture(scope="module", params=[pytest.param(False, marks=deep), True], ids=["process", "thread"])
def shared(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(in_process=request.param) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.clean()
    return shared


def test_retention_takes_what_is_too_old(broker: Broker) -> None:
    broker.topic("short", config={"retention.ms": HOUR_MS})
    broker.topic("long")
    for topic in ("short", "long"):
        broker.produce(topic, ["a"])
    broker.advance(timedelta(minutes=59))
    assert len(broker.records("short")) == 1
    broker.advance(timedelta(minutes=2))
    assert (len(broker.records("short")), len(broker.records("long"))) == (0, 1)


def test_a_member_that_is_silent_too_long_is_left_out(broker: Broker) -> None:
    broker.produce("orders", ["a"])
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 600_000,
            "heartbeat.interval.ms": 500_000,
            "max.poll.interval.ms": 600_000,
        }
    )
    lost: list[object] = []
    consumer.subscribe(["orders"], on_lost=lambda *_: lost.append(True))
    assert len(consumer.consume(1, timeout=60)) == 1
    broker.advance(599)
    assert members(broker, "g") == 1
    broker.advance(2)
    wait_for(lambda: members(broker, "g") == 0)
    consumer.close()


def test_a_transaction_that_takes_too_long_is_aborted(broker: Broker) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "t",
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", "a")
    assert producer.flush(60) == 0
    assert "orders-0: 0 to 1 (0)" in broker.report()
    broker.advance(timedelta(minutes=9))
    assert "orders-0: 0 to 1 (0)" in broker.report()
    broker.advance(timedelta(minutes=2))
    wait_for(lambda: "orders-0: 0 to 2\n" in broker.report())
    assert broker.records("orders") == []


def test_the_clock_is_not_put_back(broker: Broker) -> None:
    with pytest.raises(ValueError, match=r"\(-1\.0 s\)"):
        broker.advance(-1)


def test_cleaning_brings_back_the_real_time(broker: Broker) -> None:
    address = broker.bootstrap_servers
    broker.advance(timedelta(days=30))
    broker.clean()
    assert broker.bootstrap_servers == address
    broker.produce("orders", ["a"])
    broker.advance(0)
    assert [record.text for record in broker.records("orders")] == ["a"]


def members(broker: Broker, group: str) -> int:
    async def ask() -> int:
        async with Client(broker.bootstrap_servers) as client:
            return len((await Admin(client).describe_groups([group]))[group].members)

    return asyncio.run(ask())
