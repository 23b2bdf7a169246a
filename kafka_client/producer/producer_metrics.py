"""A producer's counts per batch and per request, reported by the names of Kafka's `producer-metrics`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed, in_ms
from kafka_client.producer.backlog import Backlog

FLUSH = "flush-time-ns-total"
TXN_INIT = "txn-init-time-ns-total"
TXN_SEND_OFFSETS = "txn-send-offsets-time-ns-total"
TXN_COMMIT = "txn-commit-time-ns-total"
TXN_ABORT = "txn-abort-time-ns-total"
TIMES = (FLUSH, TXN_INIT, TXN_SEND_OFFSETS, TXN_COMMIT, TXN_ABORT)
"""Names of the total waiting times (KIP-761)."""


class ProducerMetrics:
    """A producer's metrics. `retries` counts batches; times are in seconds."""

    __slots__ = (
        "batch_bytes",
        "batches_sent",
        "latency",
        "records_retried",
        "records_sent",
        "requests_sent",
        "retries",
        "times_ns",
    )

    def __init__(self) -> None:
        self.records_sent = self.records_retried = 0
        self.batches_sent = self.requests_sent = self.retries = 0
        self.batch_bytes = Windowed()
        """Sizes of batches as they are sent, compressed."""
        self.latency = Windowed()
        """Time from a request to its answer."""
        self.times_ns = dict.fromkeys(TIMES, 0)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that the body takes, however it ends, to one of `TIMES`."""
        start_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            self.times_ns[name] += time.perf_counter_ns() - start_ns

    def sent(self, sizes: list[int]) -> None:
        """Count a request with batches of these sizes in bytes."""
        self.requests_sent += 1
        self.batches_sent += len(sizes)
        for size in sizes:
            self.batch_bytes.record(size)

    def retried(self, records: int) -> None:
        """Count a batch of `records` records that is sent again."""
        self.retries += 1
        self.records_retried += records

    def values(self, backlog: Backlog, *, in_flight: int) -> Values:
        """Return the metrics by Kafka's names, with times in milliseconds unless the name says otherwise."""
        memory = backlog.memory
        return {
            "record-send-total": self.records_sent,
            "record-error-total": backlog.records_failed,
            "record-retry-total": self.records_retried,
            "request-total": self.requests_sent,
            "outgoing-byte-total": self.batch_bytes.total,
            **in_ms("request-latency", self.latency),
            "batch-size-avg": self.batch_bytes.average,
            "batch-size-max": self.batch_bytes.largest,
            "requests-in-flight": in_flight,
            "buffer-total-bytes": memory.limit,
            "buffer-available-bytes": max(memory.limit - memory.used, 0),
            "waiting-threads": memory.waiting,
            "bufferpool-wait-time-ns-total": memory.waited_ns,
            **self.times_ns,
        }
