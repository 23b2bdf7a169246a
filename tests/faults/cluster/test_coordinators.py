"""Coordinators of groups and of transactions are killed: what they have acknowledged the next one knows."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.cluster.audit import assert_kept
from tests.faults.cluster.cluster import TRANSACTION, Cluster
from tests.faults.cluster.writers import PARTITIONS, ConfluentWriter
from tests.support import depth
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")

QUIET = {
    "log_level": 0,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
RECORDS_BETWEEN = 300
TRANSACTIONS_BETWEEN = 15


class Reader:
    """A member of a group that commits what it has read, after each handful of records.

    `committed`: the positions that were acknowledged, by partition; `read`: the numbers read, by partition.
    """

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            **QUIET,
        }
        self._topic = topic
        self.committed: dict[int, int] = {}
        self.read: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        self._open()

    def _open(self) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(self._settings)
        self._consumer.subscribe([self._topic])
        self._next: dict[int, int] = {}

    def reopen(self) -> None:
        """Begin again where the group has come to."""
        self._consumer.close()
        self._open()

    def read_more(self, records: int) -> None:
        """Read and commit until so many more have been read."""
        target = sum(map(len, self.read.values())) + records
        wait_for(lambda: self.read_some() >= target)

    def read_some(self) -> int:
        from confluent_kafka import KafkaException

        for message in self._consumer.consume(200, timeout=0.2):
            if message.error() is None:
                self._take(message)
        try:
            done = self._consumer.commit(asynchronous=False)
        except KafkaException:
            return sum(map(len, self.read.values()))
        for each in done or ():
            if each.error is None:
                self.committed[each.partition] = each.offset
        return sum(map(len, self.read.values()))

    def _take(self, message: Any) -> None:
        partition, offset, read = message.partition(), message.offset(), self.read[message.partition()]
        if partition not in self._next or offset != self._next[partition]:
            # Where it begins, or begins again: never before what was committed, and nothing is left out.
            assert self.committed.get(partition, 0) <= offset <= len(read), f"{partition}: {offset}"
        self._next[partition] = offset + 1
        number = int(message.value())
        assert number == offset * PARTITIONS + partition
        if offset == len(read):
            read.append(number)

    def close(self) -> None:
        self._consumer.close()


@depth.deep
def test_a_group_goes_on(tmp_path: Path, zookeeper: str) -> None:
    with Cluster(tmp_path, zookeeper) as cluster:
        topic = cluster.create_topic("t")
        with ConfluentWriter(cluster.bootstrap, topic) as writer:
            reader = Reader(cluster.bootstrap, topic, "g")
            reader.read_more(RECORDS_BETWEEN)
            for turn in range(3):
                victim = cluster.coordinator("g")
                cluster.kill(victim)
                if turn % 2:
                    reader.reopen()
                reader.read_more(RECORDS_BETWEEN)
                cluster.start(victim)
                wait_for(lambda: cluster.is_in_sync("__consumer_offsets"))
            reader.reopen()
            reader.read_more(RECORDS_BETWEEN)
            writer.finish()
            wait_for(lambda: reader.read_some() == writer.sent)
            reader.close()
            wait_for(lambda: cluster.is_in_sync("__consumer_offsets"))
            print(f"{assert_kept(cluster, writer)} records, {sum(reader.committed.values())} committed")


class Transactor:
    """Transactions one after the other in a thread, each with one record in each partition: its number.

    `committed` and `aborted` are those whose end was acknowledged; of others nobody knows.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self.started = 0
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.errors: Counter[str] = Counter()
        self.failed: list[BaseException] = []
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name="transactions", daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            while not self.is_over.is_set():
                self._with_one_producer()
        except BaseException as error:
            self.failed.append(error)
            raise

    def _with_one_producer(self) -> None:
        from confluent_kafka import KafkaException, Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "x",
                "transaction.timeout.ms": 20_000,
                **QUIET,
            }
        )
        try:
            producer.init_transactions(100)
            while not self.is_over.is_set():
                self._one(producer)
        except KafkaException as error:
            self.errors[error.args[0].name()] += 1

    def _one(self, producer: Any) -> None:
        number = self.started
        self.started += 1
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(self._topic, b"%d" % number, partition=partition)
        if number % 5 == 4:
            producer.abort_transaction(100)
            self.aborted.add(number)
            return
        if self._commit(producer):
            self.committed.add(number)
        else:
            producer.abort_transaction(100)
            self.aborted.add(number)

    def _commit(self, producer: Any) -> bool:
        """Return True if the transaction is committed, False if it has to be aborted.

        Raises KafkaException if the outcome cannot be known.
        """
        from confluent_kafka import KafkaException

        while True:
            try:
                producer.commit_transaction(100)
            except KafkaException as error:
                self.errors[error.args[0].name()] += 1
                if error.args[0].txn_requires_abort():
                    return False
                if not error.args[0].retriable():
                    raise
            else:
                return True

    def goes_on(self, since: int | None = None) -> None:
        """Wait until so many more are committed than there were, by default than there are now."""
        target = (len(self.committed) if since is None else since) + TRANSACTIONS_BETWEEN
        wait_for(lambda: len(self.committed) >= target or bool(self.failed))
        assert not self.failed, self.failed[0]

    def finish(self) -> None:
        self.is_over.set()
        self._thread.join(200)
        assert not self._thread.is_alive()
        assert not self.failed, self.failed[0]


def committed_records(bootstrap: str, topic: str) -> list[list[int]]:
    """Return what a read_committed consumer reads from beginning to end, by partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "audit",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    numbers: list[list[int]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])

    def read_on() -> bool:
        for message in consumer.consume(500, timeout=0.2):
            if message.error() is None:
                numbers[message.partition()].append(int(message.value()))
            else:
                ended.add(message.partition())
        return len(ended) == PARTITIONS

    wait_for(read_on)
    consumer.close()
    return numbers


def assert_whole(transactor: Transactor, numbers_by_partition: list[list[int]]) -> None:
    """Check that each transaction is there wholly or not at all, once and in order, and all committed ones
    are.
    """
    assert all(numbers == numbers_by_partition[0] for numbers in numbers_by_partition)
    assert numbers_by_partition[0] == sorted(set(numbers_by_partition[0]))
    assert transactor.committed <= set(numbers_by_partition[0])
    assert not transactor.aborted & set(numbers_by_partition[0])


@depth.deep
def test_transactions_are_whole(tmp_path: Path, zookeeper: str) -> None:
    with Cluster(tmp_path, zookeeper) as cluster:
        topic = cluster.create_topic("t")
        transactor = Transactor(cluster.bootstrap, topic)
        transactor.goes_on()
        for turn in range(4):
            victim = cluster.coordinator("x", TRANSACTION) if turn % 2 == 0 else cluster.leader(topic, turn)
            cluster.kill(victim)
            transactor.goes_on()
            cluster.start(victim)
            wait_for(lambda: cluster.is_in_sync("__transaction_state"))
        transactor.goes_on()
        transactor.finish()
        print(f"{len(transactor.committed)} of {transactor.started} committed; {dict(transactor.errors)}")
        assert_whole(transactor, committed_records(cluster.bootstrap, topic))
        wait_for(lambda: cluster.is_in_sync(topic))
        cluster.stop()
        cluster.assert_no_tracebacks()
