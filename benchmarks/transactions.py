"""The cost of transactions for a producer, compared with the idempotent producer without transactions.

Both are confluent-kafka's and write 1 KB records to 10 partitions, one of them in transactions of one second.
Runs of both kinds alternate.

    python -m benchmarks.transactions [--bootstrap-server HOST:PORT] [--runs N]
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from statistics import mean

from benchmarks import raw
from benchmarks.broker import arguments, broker_for
from benchmarks.cpu import cpu_seconds
from benchmarks.report import Report

PARTITIONS = 10
RECORD = b"v" * 1024
TRANSACTIONS = 4
"""In a run; the run without lasts as long."""
SECONDS = 1.0
CALLS = 1000
"""Records between two looks at the clock."""
TOPIC = "bench-transactions"

try:
    from confluent_kafka import KafkaError, Message, Producer
except ImportError:
    sys.exit("this benchmark drives the broker with confluent-kafka: pip install confluent-kafka")


class Load:
    """A producer that counts what was acknowledged."""

    def __init__(self, bootstrap: str, transactional_id: str = "") -> None:
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 10_000,
        }
        if transactional_id:
            settings["transactional.id"] = transactional_id
        self.producer = Producer(settings)
        self.acknowledged = 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.acknowledged += 1

    def write(self, seconds: float) -> None:
        """Write as fast as possible for so many seconds. Some records may not be acknowledged on return."""
        produce, poll, delivered = self.producer.produce, self.producer.poll, self._delivered
        end = time.perf_counter() + seconds
        partition = 0
        while time.perf_counter() < end:
            for _ in range(CALLS):
                partition = (partition + 1) % PARTITIONS
                while True:
                    try:
                        produce(TOPIC, RECORD, partition=partition, on_delivery=delivered)
                        break
                    except BufferError:
                        poll(0.01)
            poll(0)


def without(bootstrap: str) -> tuple[int, float]:
    """Return (records, seconds) without transactions."""
    load = Load(bootstrap)
    load.producer.list_topics(timeout=10)
    started = time.perf_counter()
    load.write(TRANSACTIONS * SECONDS)
    load.producer.flush()
    return load.acknowledged, time.perf_counter() - started


def within(bootstrap: str, commits: list[float]) -> tuple[int, float]:
    """Return (records, seconds) in transactions.

    Add the milliseconds of each commit, with its flush, to `commits`.
    """
    load = Load(bootstrap, f"bench-{uuid.uuid4()}")
    load.producer.init_transactions()
    started = time.perf_counter()
    for _ in range(TRANSACTIONS):
        begin = time.perf_counter()
        load.producer.begin_transaction()
        load.write(SECONDS - (time.perf_counter() - begin))
        committed_at = time.perf_counter()
        load.producer.commit_transaction()
        commits.append((time.perf_counter() - committed_at) * 1000)
    return load.acknowledged, time.perf_counter() - started


class Series:
    """The figures of one way to write: records/s, and the broker's CPU seconds per million records."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.rates: list[float] = []
        self.cpu: list[float] = []

    def measure(self, write: Callable[[], tuple[int, float]]) -> None:
        """Add a run."""
        before = cpu_seconds(self._pid)
        records, seconds = write()
        self.rates.append(records / seconds)
        self.cpu.append((cpu_seconds(self._pid) - before) * 1e6 / records)

    def ratios(self, to: Series) -> list[float]:
        """Return the ratio of each rate to the mean of the two rates of `to` around it."""
        around = zip(to.rates, to.rates[1:], strict=False)
        return [rate / mean(pair) for rate, pair in zip(self.rates, around, strict=True)]


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    with broker_for(options) as broker:
        raw.create_topic(broker.bootstrap, TOPIC, PARTITIONS)
        without(broker.bootstrap)
        within(broker.bootstrap, [])
        plain, transactional = Series(broker.pid), Series(broker.pid)
        commits: list[float] = []
        plain.measure(lambda: without(broker.bootstrap))
        for _ in range(options.runs):
            transactional.measure(lambda: within(broker.bootstrap, commits))
            plain.measure(lambda: without(broker.bootstrap))
    report = Report(
        f"transactions of {SECONDS:g} s over {PARTITIONS} partitions (confluent-kafka, 1 KB records)"
    )
    report.add("without transactions: records/s", plain.rates)
    report.add("with: records/s", transactional.rates)
    report.add("  ratio to the runs before and after", transactional.ratios(plain), "≥ 0.9")
    report.add("commit, with its flush: ms", commits)
    report.add("without transactions: broker CPU s per million records", plain.cpu)
    report.add("with: broker CPU s per million records", transactional.cpu)
    report.show()


if __name__ == "__main__":
    main()
