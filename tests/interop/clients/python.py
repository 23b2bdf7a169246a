"""kafka-python."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import BrokerResponseError, RebalanceInProgressError

from kafka_client.records import NewRecord, Record
from tests.interop.clients.base import SECONDS, SESSION_MS, Refused
from tests.support.waiting import wait_for

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

POLL_MS = 300

name = "kafka-python"
strategies = tuple(ASSIGNORS)


def produce(
    bootstrap: str, topic: str, records: Iterable[NewRecord], codec: str = "none", partition: int = 0
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
        max_request_size=10_000_000,
    )
    try:
        sent = [
            producer.send(
                topic,
                value,
                key,
                list(headers),
                partition=partition,
                timestamp_ms=timestamp if timestamp >= 0 else None,
            )
            for timestamp, key, value, headers in records
        ]
        for future in sent:
            future.get(SECONDS)
    except BrokerResponseError as error:
        raise Refused(error.errno) from error
    finally:
        producer.close()


def consume(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Record]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", check_crcs=True)
    assigned = TopicPartition(topic, partition)
    consumer.assign([assigned])
    records: list[Record] = []
    deadline = time.monotonic() + SECONDS
    while len(records) < count and time.monotonic() < deadline:
        batches = consumer.poll(200, max_records=count - len(records))
        records += map(to_record, batches.get(assigned, ()))
    consumer.close()
    return records


def to_record(message: Any) -> Record:
    """Return a message in the form that the tests compare."""
    return message.offset, message.timestamp, message.key, message.value, tuple(map(tuple, message.headers))


def offset_for_time(bootstrap: str, topic: str, timestamp: int) -> int | None:
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    position = consumer.offsets_for_times({partition: timestamp})[partition]
    consumer.close()
    return None if position is None else int(position.offset)


class PythonMember(ConsumerRebalanceListener):
    """See ``Member``. The consumer lives in a thread of its own that does nothing but poll, for long: a poll
    that ends in the middle of a rebalance may lose kafka-python 3.0 its assignment, on any broker.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        strategy: str = "range",
        *,
        instance: str | None = None,
    ) -> None:
        self.assignments = 0
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            partition_assignment_strategy=[ASSIGNORS[strategy]],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
            reconnect_backoff_max_ms=500,
            # A leader that assigned before it had the topic's metadata looks again when it has new ones.
            metadata_max_age_ms=2_000,
        )
        # A leader that assigns before it has the metadata of what it subscribed to assigns nothing, or shares
        # out once more when they come.
        wait_for(lambda: bool(self._consumer.partitions_for_topic(topic)))
        self._consumer.subscribe([topic], listener=self)
        self._received: queue.SimpleQueue[tuple[int, Record]] = queue.SimpleQueue()
        self._worker = ThreadPoolExecutor(1, "kafka-python")
        self._polling: Future[None] = self._worker.submit(self._poll)
        self._open = True

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assignments += 1

    def _poll(self) -> None:
        """Poll, and go on while a rebalance is under way: kafka-python 3.0.12 loses a join that ends between
        two polls, neither takes up what it was given nor sends heartbeats.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            for partition, messages in self._consumer.poll(POLL_MS, max_records=1000).items():
                for message in messages:
                    self._received.put((partition.partition, to_record(message)))
            if not self._consumer._coordinator.rejoining or time.monotonic() > deadline:
                return

    @property
    def assigned(self) -> frozenset[int]:
        return frozenset(partition.partition for partition in self._consumer.assignment())

    def poll(self) -> list[tuple[int, Record]]:
        wait([self._polling], 0.02)
        if self._polling.done():
            self._polling.result()
            self._polling = self._worker.submit(self._poll)
        return [self._received.get() for _ in range(self._received.qsize())]

    def commit(self) -> None:
        self._worker.submit(self._commit).result(SECONDS)

    def _commit(self) -> None:
        while True:
            try:
                return self._consumer.commit()
            except RebalanceInProgressError:
                self._poll()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._worker.submit(self._consumer.close)
            self._worker.shutdown()


member = PythonMember
