"""confluent-kafka: librdkafka behind Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from tests.interop.transactions.clients.base import SECONDS, SESSION_MS, TIMEOUT_MS, Fenced, MustAbort

QUIET = {
    "log_level": 0,
    "reconnect.backoff.max.ms": "500",
    "topic.metadata.propagation.max.ms": "60000",
    # Where a broker comes back at its old address, librdkafka 2.16 drops its connections otherwise, and with
    # them a request to the transaction coordinator: `send_offsets_to_transaction` never returns then.
    "metadata.recovery.strategy": "none",
}
FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        cause = error.args[0]
        if cause.code() in FENCED:
            raise Fenced(cause) from error
        if cause.txn_requires_abort():
            raise MustAbort(cause) from error
        raise


def retried(call: Callable[..., object], *arguments: object) -> None:
    """Errors that librdkafka calls retriable are the caller's to retry."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with translated():
                call(*arguments)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


class ConfluentProducer:
    """See ``Producer``."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                **QUIET,
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 2,
            }
        )
        retried(self._producer.init_transactions, SECONDS)

    def begin(self) -> None:
        with translated():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int) -> None:
        with translated():
            self._producer.produce(topic, value, partition=partition)

    def flush(self) -> None:
        assert self._producer.flush(SECONDS) == 0

    def send_offsets(self, consumer: ConfluentConsumer) -> None:
        positions = [TopicPartition(consumer.topic, p, offset) for p, offset in consumer.positions.items()]
        group = consumer.consumer.consumer_group_metadata()
        retried(self._producer.send_offsets_to_transaction, positions, group, SECONDS)

    def commit(self) -> None:
        retried(self._producer.commit_transaction, SECONDS)

    def abort(self) -> None:
        retried(self._producer.abort_transaction, SECONDS)

    def close(self) -> None:
        self._producer.purge()


class ConfluentConsumer:
    """See ``Consumer``."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.topic = topic
        self.positions: dict[int, int] = {}
        self._assigned: set[int] = set()
        self.consumer = confluent_kafka.Consumer(
            {
                **QUIET,
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 200,
            }
        )
        self.consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._lose, on_lost=self._lose)

    def _assign(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self.positions.clear()
        self._assigned = {some.partition for some in partitions}

    def _lose(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self.positions.clear()
        self._assigned = set()

    def poll(self) -> list[tuple[int, int, bytes]]:
        records = []
        for message in self.consumer.consume(20, 0.05):
            if message.error() is None:
                self.positions[message.partition()] = message.offset() + 1
                records.append((message.partition(), message.offset(), message.value()))
        return records

    def committed(self, partitions: int) -> dict[int, int]:
        requested = [TopicPartition(self.topic, number) for number in range(partitions)]
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                answers = self.consumer.committed(requested, SECONDS)
                return {some.partition: some.offset for some in answers if some.offset != OFFSET_INVALID}
            except KafkaException:
                if time.monotonic() > deadline:
                    raise

    def rewind(self) -> None:
        self.positions.clear()
        offsets = self.committed(max(self._assigned, default=-1) + 1)
        for partition in self._assigned:
            self.consumer.seek(
                TopicPartition(self.topic, partition, offsets.get(partition, OFFSET_BEGINNING))
            )

    def close(self) -> None:
        self.consumer.close()


def producer(bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> ConfluentProducer:
    return ConfluentProducer(bootstrap, transactional_id, timeout_ms)


consumer = ConfluentConsumer


def read(bootstrap: str, topic: str, partitions: int, *, committed: bool) -> list[bytes]:
    reader = confluent_kafka.Consumer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    values: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = reader.poll(SECONDS)
        assert message is not None, "nothing came"
        if (error := message.error()) is None:
            values.append(message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            assert error.retriable(), error.str()
    reader.close()
    return sorted(values)
