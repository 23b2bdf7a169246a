"""Transactional producers that note what became of each transaction, and the audit by readers of committed
records: librdkafka's, which speaks transaction version 1, and our own, which speaks version 2.

Number n goes to partition n modulo their count. Each has a transactional id of its own: nobody may fence it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any, Self

from kafka_client import Admin, BatchFetcher, Client, TopicPartition, TransactionalProducer
from kafka_client.errors import AbortableTransactionError, ProducerFenced
from tests.faults.cluster.writers import Writer
from tests.support.waiting import SECONDS, wait_for

RECORDS = 12
"""In one transaction."""
TRANSACTION_MS = 600_000
"""No transaction times out: who is fenced then is fenced by mistake."""
ANSWERED_MS = 150_000
"""How long librdkafka waits for an answer."""
CALL_S = 30.0
"""How long one call of librdkafka's may take before it is made again."""
PAUSE_S = 0.05


class Fate(Enum):
    """A transaction's outcome, as its producer was told."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transactor(Writer):
    """`fates` are of all transactions, by their records' numbers. Acknowledged is what is committed."""

    def __init__(self, bootstrap: str, topic: str, seed: int = 0) -> None:
        super().__init__(bootstrap, topic)
        self.fates: dict[range, Fate] = {}
        self._rng = random.Random(f"{topic} {seed}")

    def begin_next(self) -> range:
        """Begin a transaction, and return the numbers of its records."""
        numbers = range(self.sent, self.sent + self._rng.randint(1, RECORDS))
        self.sent = numbers.stop
        self.fates[numbers] = Fate.OPEN
        return numbers

    def is_to_commit(self) -> bool:
        """Return True for two of three transactions."""
        return self._rng.random() < 2 / 3

    def ended(self, numbers: range, fate: Fate) -> None:
        """Note the outcome of a transaction, as the producer was told."""
        self.fates[numbers] = fate
        if fate is Fate.COMMITTED:
            for number in numbers:
                self.noted(number, number % self.partitions, None)

    def finish(self) -> None:
        """Begin no more transactions; none is open then."""
        self.is_over.set()
        self._thread.join(2 * SECONDS)
        assert not self._thread.is_alive(), f"{self.topic}: {self._of(Fate.OPEN)} are open"
        assert not self.failed, self.failed[0]
        assert not self._of(Fate.OPEN), f"{self.topic}: {self._of(Fate.OPEN)} are open"

    def _of(self, fate: Fate) -> list[range]:
        return [numbers for numbers, each in self.fates.items() if each is fate]

    def numbers(self, fate: Fate) -> set[int]:
        """Return the records of transactions that had this fate."""
        return {number for numbers in self._of(fate) for number in numbers}


class ConfluentTransactor(Transactor):
    """librdkafka's, by transaction version 1: its transactions have the same epoch.

    A batch that is answered REQUEST_TIMED_OUT may be sent again in other company. Its sequence is out
    of order then, and librdkafka gives up for good. So brokers may take longer than networks are parted.
    """

    def run(self) -> None:
        from confluent_kafka import KafkaException, Producer

        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.topic,
                "transaction.timeout.ms": TRANSACTION_MS,
                "linger.ms": 1,
                "max.in.flight.requests.per.connection": 1,
                "request.timeout.ms": ANSWERED_MS,
                "socket.timeout.ms": ANSWERED_MS + 10_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "debug": "eos",
            },
            logger=self._noting(),
        )
        self._call(producer.init_transactions)
        while not self.is_over.is_set():
            numbers = self.begin_next()
            producer.begin_transaction()
            try:
                for number in numbers:
                    producer.produce(self.topic, b"%d" % number, partition=number % self.partitions)
                    producer.poll(0)
                    time.sleep(self._rng.random() * PAUSE_S)
                if self.is_to_commit():
                    self._call(producer.commit_transaction)
                    self.ended(numbers, Fate.COMMITTED)
                    continue
                # What the coordinator has not heard of it refuses to abort, and librdkafka gives up for good.
                while producer.flush(CALL_S):
                    pass
            except KafkaException as error:
                if error.args[0].fatal():
                    raise
                self.notes.append(f"{numbers} to be aborted: {error}")
            self._call(producer.abort_transaction)
            self.ended(numbers, Fate.ABORTED)

    def _noting(self) -> logging.Logger:
        """Return a logger that keeps the last of what librdkafka did."""
        logger = logging.Logger("librdkafka", logging.DEBUG)
        handler = logging.Handler()
        handler.emit = lambda record: self.notes.append(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        return logger

    def _call(self, call: Callable[[float], None]) -> None:
        """Make a call again until it is carried out, as librdkafka asks for."""
        from confluent_kafka import KafkaException

        while True:
            try:
                return call(CALL_S)
            except KafkaException as error:
                if error.args[0].fatal():
                    self.failed.append("\n".join([str(error), *self.notes]))
                if not error.args[0].retriable():
                    raise


class OwnTransactor(Transactor):
    """Our own, by transaction version 2: each transaction has an epoch of its own."""

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with Client(self.bootstrap) as client:
            producer = TransactionalProducer(
                client, self.topic, linger_ms=1, transaction_timeout_ms=TRANSACTION_MS
            )
            await producer.start()
            while not self.is_over.is_set():
                await self._transact(producer)
            await producer.close()

    async def _transact(self, producer: TransactionalProducer) -> None:
        numbers = self.begin_next()
        producer.begin()
        try:
            for number in numbers:
                record = (1, None, b"%d" % number, ())
                await producer.send(self.topic, number % self.partitions, [record])
                await asyncio.sleep(self._rng.random() * PAUSE_S)
            if self.is_to_commit():
                await producer.commit()
                self.ended(numbers, Fate.COMMITTED)
                return
        except ProducerFenced:
            raise
        except AbortableTransactionError as error:
            self.notes.append(str(error))
        await producer.abort()
        self.ended(numbers, Fate.ABORTED)


class CommittedReader:
    """Reads committed records of some topics in a thread, as they come; `seen` by partition and offset."""

    def __init__(self, bootstrap: str, transactors: Iterable[Transactor]) -> None:
        self.records: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
        self._places = [
            TopicPartition(each.topic, index) for each in transactors for index in range(each.partitions)
        ]
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._guarded, name="reads committed", daemon=True)

    def _guarded(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self._failed.append(error)
            raise

    def _read(self) -> None:
        from confluent_kafka import Consumer
        from confluent_kafka import TopicPartition as Place

        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "readers",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.assign([Place(*place, 0) for place in self._places])
        while not self._is_over.is_set():
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    place = TopicPartition(message.topic(), message.partition())
                    self.records[place][message.offset()] = int(message.value())
        consumer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join(SECONDS)
        if error is None:
            assert not self._thread.is_alive() and not self._failed, self._failed


def assert_transactions(bootstrap: str, reader: CommittedReader, *transactors: Transactor) -> Counter[str]:
    """Compare what readers of committed records get with what producers were told, which have finished.

    No transaction is left open, and what `reader` was given meanwhile is the same.
    """
    count: Counter[str] = Counter()
    for transactor in transactors:
        committed_records = asyncio.run(_committed(bootstrap, transactor))
        for place, records in committed_records.items():
            wait_for(lambda place=place, records=records: len(reader.records[place]) >= len(records))  # type: ignore[misc]
            assert reader.records[place] == records, f"{place}: a reader was given something else before"
        times = Counter(number for records in committed_records.values() for number in records.values())
        committed, aborted = transactor.numbers(Fate.COMMITTED), transactor.numbers(Fate.ABORTED)
        assert not committed - times.keys(), f"{transactor.topic}: missing {sorted(committed - times.keys())}"
        assert not aborted & times.keys(), f"{transactor.topic}: aborted {sorted(aborted & times.keys())}"
        assert max(times.values(), default=1) == 1, f"{transactor.topic}: twice {times.most_common(3)}"
        count.update({"transactions": len(transactor.fates), "records committed": len(committed)})
        count.update({"records aborted": len(aborted)})
    return count


async def _committed(bootstrap: str, transactor: Transactor) -> dict[TopicPartition, dict[int, int]]:
    """Return all records of a topic that readers of committed ones get, by partition and offset."""
    records_by_partition: dict[TopicPartition, dict[int, int]] = {}
    async with Client(bootstrap) as client:
        ends = await _ends(client, transactor)
        fetcher = BatchFetcher(client, isolation_level="read_committed")
        for place in ends:
            records_by_partition[place] = {}
            fetcher.add(place, 0)
        left = {place for place, end in ends.items() if end}
        while left:
            for fetched in await asyncio.wait_for(fetcher.fetch(), SECONDS):
                for offset, _, _, value, _ in fetched.records():
                    records_by_partition[fetched.tp][offset] = int(value or b"")
                if fetched.next_offset >= ends[fetched.tp]:
                    left.discard(fetched.tp)
        await fetcher.close()
    return records_by_partition


async def _ends(client: Client, transactor: Transactor) -> dict[TopicPartition, int]:
    """Return where the partitions end, once no transaction in them is open."""
    admin = Admin(client)
    places: dict[TopicPartition, Any] = {
        TopicPartition(transactor.topic, index): "latest" for index in range(transactor.partitions)
    }
    deadline = time.monotonic() + SECONDS
    while True:
        ends = await admin.list_offsets(places)
        stable = await admin.list_offsets(places, isolation_level="read_committed")
        still_open = [place for place in places if stable[place].offset < ends[place].offset]
        if not still_open:
            return {place: ends[place].offset for place in places}
        assert time.monotonic() < deadline, f"transactions are still open in {still_open}"
        await asyncio.sleep(0.2)
