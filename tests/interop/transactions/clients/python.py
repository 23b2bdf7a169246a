"""kafka-python 3."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.interop.transactions.clients.base import SECONDS, SESSION_MS, TIMEOUT_MS, Fenced, MustAbort
from tests.support.waiting import wait_for


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise Fenced(error) from error
    except KafkaError as error:
        if isinstance(error.__cause__, ProducerFencedError | InvalidProducerEpochError):
            raise Fenced(error) from error
        raise MustAbort(error) from error


class PythonProducer:
    """See ``Producer``."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._sent: list[Any] = []
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=2,
            reconnect_backoff_max_ms=500,
            max_block_ms=int(SECONDS * 1000),
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._sent.clear()
        with translated():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int) -> None:
        with translated():
            self._sent.append(self._producer.send(topic, value, partition=partition))

    def flush(self) -> None:
        with translated():
            self._producer.flush(SECONDS)
            for future in self._sent:
                future.get(SECONDS)

    def send_offsets(self, consumer: PythonConsumer) -> None:
        offsets = {
            TopicPartition(consumer.topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in consumer.positions.items()
        }
        with translated():
            self._producer.send_offsets_to_transaction(offsets, consumer.consumer.group_metadata())

    def commit(self) -> None:
        with translated():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with translated():
            self._producer.abort_transaction()

    def close(self) -> None:
        with suppress(Exception):
            self._producer.close(timeout=0)


class PythonConsumer:
    """See ``Consumer``."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.topic = topic
        self.positions: dict[int, int] = {}
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=200,
            reconnect_backoff_max_ms=500,
        )
        # A leader that assigns before it has the metadata of what it subscribed to assigns nothing, or shares
        # out once more when they come.
        wait_for(lambda: bool(self.consumer.partitions_for_topic(topic)))

    def poll(self) -> list[tuple[int, int, bytes]]:
        """Poll, and go on while a rebalance is under way: kafka-python 3.0.12 loses a join that ends between
        two polls, neither takes up what it was given nor sends heartbeats.
        """
        polled = []
        deadline = time.monotonic() + SECONDS
        while True:
            for partition, records in self.consumer.poll(timeout_ms=200, max_records=20).items():
                for record in records:
                    self.positions[partition.partition] = record.offset + 1
                    polled.append((partition.partition, record.offset, record.value))
            if not self.consumer._coordinator.rejoining or time.monotonic() > deadline:
                return polled

    def committed(self, partitions: int) -> dict[int, int]:
        offsets = {}
        for number in range(partitions):
            offset = self.consumer.committed(TopicPartition(self.topic, number))
            if offset is not None:
                offsets[number] = offset
        return offsets

    def rewind(self) -> None:
        self.positions.clear()
        for partition in self.consumer.assignment():
            offset = self.consumer.committed(partition)
            if offset is None:
                self.consumer.seek_to_beginning(partition)
            else:
                self.consumer.seek(partition, offset)

    def close(self) -> None:
        self.consumer.close()


def producer(bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> PythonProducer:
    return PythonProducer(bootstrap, transactional_id, timeout_ms)


consumer = PythonConsumer


def read(bootstrap: str, topic: str, partitions: int, *, committed: bool) -> list[bytes]:
    assigned = [TopicPartition(topic, number) for number in range(partitions)]
    reader = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
    )
    reader.assign(assigned)
    reader.seek_to_beginning(*assigned)
    ends = reader.end_offsets(assigned)  # with isolation, the last stable offsets
    values: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    while any(reader.position(where) < ends[where] for where in assigned):
        assert time.monotonic() < deadline, f"not at {ends}"
        for records in reader.poll(timeout_ms=200).values():
            values += [record.value for record in records]
    reader.close()
    return sorted(values)
