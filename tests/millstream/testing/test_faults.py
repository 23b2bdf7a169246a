"""The faults of a broker that a test causes, as clients see them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from millstream.testing import Broker, BrokerError
from tests.support.depth import deep
from tests.support.waiting import wait_for


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=deep)], ids=["process", "thread"])
def shared(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(in_process=request.param) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.clean()
    return shared


def producer(broker: Broker, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "reconnect.backoff.ms": 10, **settings})


def texts(broker: Broker, topic: str = "orders") -> list[str]:
    return [record.text for record in broker.records(topic)]


@deep
def test_a_lost_acknowledgement_leaves_the_record_twice_but_for_idempotence(broker: Broker) -> None:
    broker.topic("orders")
    for idempotent in (False, True):
        client = producer(broker, **{"enable.idempotence": idempotent})
        broker.faults.lose_answers("Produce")
        client.produce("orders", str(idempotent))
        assert client.flush(60) == 0
    assert texts(broker) == ["False", "False", "True"]


def test_an_api_that_is_none_is_named(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="no API 'Send': it is one of Produce, Fetch"):
        broker.faults.lose_answers("Send")


def test_an_answer_that_is_lost_is_carried_out(broker: Broker) -> None:
    broker.faults.lose_answers("EndTxn")
    client = producer(broker, **{"transactional.id": "t"})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce("orders", "a")
    client.commit_transaction(60)
    broker.assert_exactly_once("orders", key=lambda record: record.text, expected=["a"])


@deep
def test_dropped_connections_are_made_again(broker: Broker) -> None:
    client = producer(broker)
    client.produce("orders", "a")
    assert client.flush(60) == 0
    broker.faults.drop_connections()
    client.produce("orders", "b")
    assert client.flush(60) == 0
    # The drop may come between an append and its response: a producer that is not idempotent sends again.
    assert list(dict.fromkeys(texts(broker))) == ["a", "b"], (
        f"{broker.records('orders')}\n{broker.report()}\n{broker.requests()}"
    )


@deep
def test_a_moved_coordinator_is_looked_for(broker: Broker) -> None:
    broker.produce("orders", ["a", "b"])
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(1, timeout=60)) == 1
    before = len(broker.requests())
    broker.faults.move_coordinators()
    consumer.commit(asynchronous=False)
    since = [request.api for request in broker.requests()[before:]]
    assert since.index("OffsetCommit") < since.index("FindCoordinator")
    assert [message.value() for message in consumer.consume(1, timeout=60)] == [b"b"]
    consumer.commit(asynchronous=False)
    consumer.close()
    broker.wait_lag_zero("g", seconds=60)


def test_a_fenced_producer_learns_it(broker: Broker) -> None:
    client = producer(broker, **{"transactional.id": "t"})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce("orders", "a")
    assert client.flush(60) == 0
    assert broker.faults.fence("t") > 0
    with pytest.raises(KafkaException) as raised:
        client.commit_transaction(60)
    assert raised.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    assert texts(broker) == []
    with pytest.raises(BrokerError, match="unknown"):
        broker.faults.fence("unknown")


def test_a_slow_disk_makes_writes_slow(broker: Broker) -> None:
    broker.produce("orders", ["a"])
    broker.faults.slow_disk(0.3)
    before = time.monotonic()
    broker.produce("orders", ["b"])
    assert time.monotonic() - before > 0.3
    broker.faults.heal_disk()
    assert texts(broker) == ["a", "b"]


def test_a_full_disk_stops_the_broker_until_it_is_started_again(broker: Broker) -> None:
    broker.produce("orders", ["a"])
    broker.faults.full_disk()
    client = producer(broker)
    client.produce("orders", "b")
    wait_for(lambda: "cannot be asked" in broker.report() or "has stopped" in broker.report())
    broker.restart()
    assert client.flush(60) == 0
    assert texts(broker) == ["a", "b"]


def test_a_pause_keeps_clients_waiting(broker: Broker) -> None:
    client = producer(broker)
    client.produce("orders", "a")
    assert client.flush(60) == 0
    broker.pause()
    client.produce("orders", "b")
    assert client.flush(0.3) == 1
    with pytest.raises(BrokerError, match=r"is paused .*resume\(\)"):
        broker.topic("other")
    broker.resume()
    assert client.flush(60) == 0
    assert texts(broker) == ["a", "b"]


def test_a_restart_keeps_data_and_address(broker: Broker) -> None:
    address = broker.bootstrap_servers
    broker.produce("orders", ["a"])
    broker.restart()
    assert broker.bootstrap_servers == address
    assert texts(broker) == ["a"]


def test_a_killed_broker_comes_back_with_its_data(broker: Broker) -> None:
    broker.produce("orders", ["a"])
    if broker.in_process:
        with pytest.raises(BrokerError, match="cannot be killed"):
            broker.kill()
        return
    address = broker.bootstrap_servers
    broker.kill()
    with pytest.raises(BrokerError, match=r"does not run .*start\(\)"):
        broker.topic("other")
    broker.start()
    assert broker.bootstrap_servers == address
    assert texts(broker) == ["a"]


def test_cleaning_heals_everything(broker: Broker) -> None:
    broker.faults.full_disk()
    broker.faults.lose_answers("Produce", 1_000_000)
    broker.pause()
    broker.clean()
    broker.produce("orders", ["a"])
    assert texts(broker) == ["a"]
