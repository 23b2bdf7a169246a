"""Transactions by librdkafka: commit, abort, fencing, timeout, and a broker killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.logd.api_transactions.producers import make_topic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.markers import is_stable
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

SECONDS = 100.0
QUICK_TIMEOUTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 20}


def transactional(logd: LogdProcess, transactional_id: str, **settings: object) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": logd.bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
            # Else librdkafka 2.16 may forget what it asked of a coordinator that was killed.
            "metadata.recovery.strategy": "none",
            **{name.replace("_", "."): value for name, value in settings.items()},
        },
        error_cb=lambda error: None,
    )
    producer.init_transactions(SECONDS)
    return producer


def topic_called(name: str, logd: LogdProcess) -> str:
    with RawClient(logd.port) as client:
        return make_topic(client, name, 3)


def write(producer: Producer, topic: str, *values: str) -> None:
    producer.begin_transaction()
    for index, value in enumerate(values):
        producer.produce(topic, value, partition=index % 3)
    assert producer.flush(SECONDS) == 0


def committed(logd: LogdProcess, topic: str) -> list[str]:
    """Return all values that a consumer with `read_committed` gets, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": logd.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    values, ended = [], set[int]()
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(3)])
        while len(ended) < 3:
            message = consumer.poll(SECONDS)
            assert message is not None, "nothing comes"
            error = message.error()
            if error is None:
                values.append(message.value().decode())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
    finally:
        consumer.close()
    return sorted(values)


def is_over(logd: LogdProcess, topic: str) -> bool:
    with RawClient(logd.port) as client:
        return is_stable(client, topic, 0, 1, 2)


@deep
def test_commits_and_aborts(logd: LogdProcess, new_name: Callable[..., str]) -> None:
    topic = topic_called(new_name(), logd)
    producer = transactional(logd, new_name("id"))
    for number, commit in enumerate((True, False, True, True, False)):
        write(producer, topic, f"{number}a", f"{number}b", f"{number}c", f"{number}d")
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    expected = [f"{number}{letter}" for number in (0, 2, 3) for letter in "abcd"]
    assert committed(logd, topic) == expected


@deep
def test_the_second_producer_fences_the_first(logd: LogdProcess, new_name: Callable[..., str]) -> None:
    topic, name = topic_called(new_name(), logd), new_name("id")
    first = transactional(logd, name)
    write(first, topic, "first")
    second = transactional(logd, name)
    write(second, topic, "second")
    second.commit_transaction(SECONDS)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(SECONDS)
    assert caught.value.args[0].fatal()
    assert committed(logd, topic) == ["second"]


@deep
def test_what_nobody_ends_times_out(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK_TIMEOUTS) as logd:
        topic = topic_called("t", logd)
        producer = transactional(logd, "x", transaction_timeout_ms=6_000)
        write(producer, topic, "a", "b")
        assert not is_over(logd, topic)
        wait_for(lambda: is_over(logd, topic))
        with pytest.raises(KafkaException):
            producer.commit_transaction(SECONDS)
        assert committed(logd, topic) == []
        again = transactional(logd, "x")
        write(again, topic, "c")
        again.commit_transaction(SECONDS)
        assert committed(logd, topic) == ["c"]


@deep
def test_a_transaction_goes_on_over_a_kill(tmp_path: Path) -> None:
    with LogdProcess(tmp_path) as logd:
        topic = topic_called("t", logd)
        producer = transactional(logd, "x")
        write(producer, topic, "a", "b", "c")
        logd.kill()
        logd.start()
        producer.produce(topic, "d", partition=0)
        producer.commit_transaction(SECONDS)
        write(producer, topic, "e")
        logd.kill()
        logd.start()
        producer.abort_transaction(SECONDS)
        assert committed(logd, topic) == ["a", "b", "c", "d"]


@deep
def test_a_transaction_of_a_producer_that_died_with_the_broker(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK_TIMEOUTS) as logd:
        topic = topic_called("t", logd)
        write(transactional(logd, "x", transaction_timeout_ms=6_000), topic, "a", "b")
        logd.kill()
        logd.start()
        wait_for(lambda: is_over(logd, topic))
        assert committed(logd, topic) == []
