"""kafka-python, which keeps fetch sessions as the Java client does, over partitions that fill in turn."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

pytest.importorskip("kafka")

from kafka import KafkaConsumer, TopicPartition

from tests.interop.clients.base import SECONDS
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

PARTITIONS = 8


def test_every_record_of_every_partition(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    name = create_topic(logd, new_name("sessions"), partitions=PARTITIONS)
    expected: list[tuple[int, bytes]] = []
    got: list[tuple[int, bytes]] = []
    consumer = KafkaConsumer(bootstrap_servers=logd.bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(name, index) for index in range(PARTITIONS)])
    with RawClient(logd.port) as producer:
        for number in range(6):
            for index in range(number % 3, PARTITIONS, 3):
                expected.append((index, b"%d" % number))
                producer.produce(name, [(-1, None, b"%d" % number, ())], partition=index)
            got += poll(consumer, len(expected) - len(got))
        # A session is closed and opened again: paused partitions leave it, and come back.
        consumer.pause(TopicPartition(name, 0))
        expected += [(0, b"paused"), (1, b"not paused")]
        for index, value in expected[-2:]:
            producer.produce(name, [(-1, None, value, ())], partition=index)
        got += poll(consumer, 1)
        assert got[-1] == (1, b"not paused")
        consumer.resume(TopicPartition(name, 0))
        got += poll(consumer, 1)
    consumer.close()
    assert sorted(got) == sorted(expected)
    for index in range(PARTITIONS):
        in_order = [value for partition, value in got if partition == index]
        assert in_order == [value for partition, value in expected if partition == index]


def poll(consumer: KafkaConsumer, count: int) -> list[tuple[int, bytes]]:
    """So many records, and no more."""
    got: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + SECONDS
    while len(got) < count:
        assert time.monotonic() < deadline, f"{len(got)} of {count} records"
        for partition, records in consumer.poll(timeout_ms=300).items():
            got += [(partition.partition, record.value) for record in records]
    assert len(got) == count
    return got
