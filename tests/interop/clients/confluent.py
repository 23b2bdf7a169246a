"""confluent-kafka: librdkafka behind Python."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from kafka_client.records import NewRecord, Record
from tests.interop.clients.base import SECONDS, SESSION_MS, Refused

name = "confluent-kafka"
strategies = ("range", "roundrobin", "cooperative-sticky")

QUIET = {
    "log_level": 0,
    "topic.metadata.propagation.max.ms": "60000",
    # By default it waits up to ten seconds before it looks whether a broker is back, a group's whole session.
    "reconnect.backoff.max.ms": "500",
    # Where a broker comes back at its old address, librdkafka 2.16 drops its connections otherwise, and what
    # was asked of the coordinator with them.
    "metadata.recovery.strategy": "none",
}
LARGEST = 10_000_000


def produce(
    bootstrap: str, topic: str, records: Iterable[NewRecord], codec: str = "none", partition: int = 0
) -> None:
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 5,
            "message.max.bytes": LARGEST,
        }
    )
    for timestamp, key, value, headers in records:
        stamp = {"timestamp": timestamp} if timestamp >= 0 else {}
        producer.produce(
            topic,
            value,
            key,
            partition=partition,
            headers=list(headers) or None,
            on_delivery=delivered,
            **stamp,
        )
    assert producer.flush(SECONDS) == 0
    if errors:
        raise Refused(errors[0].code())


def consume(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Record]:
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": "unused", "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    records: list[Record] = []
    deadline = time.monotonic() + SECONDS
    while len(records) < count and time.monotonic() < deadline:
        records += map(to_record, consumer.consume(count - len(records), 0.2))
    consumer.close()
    return records


def to_record(message: Message) -> Record:
    """Return a message in the form that the tests compare; raise its error if it carries one."""
    if (error := message.error()) is not None:
        raise KafkaException(error)
    headers = tuple((key, value) for key, value in message.headers() or ())
    return message.offset(), message.timestamp()[1], message.key(), message.value(), headers


def offset_for_time(bootstrap: str, topic: str, timestamp: int) -> int | None:
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": "unused"})
    (position,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=SECONDS)
    consumer.close()
    return None if position.offset == OFFSET_END else position.offset


class ConfluentMember:
    """See ``Member``."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        strategy: str = "range",
        *,
        instance: str | None = None,
    ) -> None:
        settings = {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 100,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        self.consumer = Consumer(settings)
        self.assignments = 0
        self._topic = topic
        self._partitions: set[int] = set()
        self._incremental = strategy == "cooperative-sticky"
        self.consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assignments += 1
        if not self._incremental:
            self._partitions.clear()
        self._partitions |= {partition.partition for partition in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._partitions -= {partition.partition for partition in partitions}

    @property
    def assigned(self) -> frozenset[int]:
        return frozenset(self._partitions)

    def poll(self) -> list[tuple[int, Record]]:
        return [(message.partition(), to_record(message)) for message in self.consumer.consume(1000, 0.05)]

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


member = ConfluentMember
