"""What a producer counts, per batch and per request, and tells by the names of Kafka's `producer-metrics`."""

from __future__ import annotations

from logd.metrics.metrics import Values
from logd.metrics.windowed import Windowed, in_ms


class ProducerMetrics:
    """One producer's. `retries` are of batches; times are in seconds."""

    __slots__ = (
        "batch_bytes",
        "batches_sent",
        "latency",
        "records_retried",
        "records_sent",
        "requests_sent",
        "retries",
    )

    def __init__(self) -> None:
        self.records_sent = self.records_retried = 0
        self.batches_sent = self.requests_sent = self.retries = 0
        self.batch_bytes = Windowed()
        """Of batches as they are sent, compressed."""
        self.latency = Windowed()
        """From a request to its answer."""

    def sent(self, sizes: list[int]) -> None:
        """A request with batches of these sizes goes out."""
        self.requests_sent += 1
        self.batches_sent += len(sizes)
        for size in sizes:
            self.batch_bytes.record(size)

    def retried(self, records: int) -> None:
        """A batch of so many records is to be sent again."""
        self.retries += 1
        self.records_retried += records

    def values(self, *, buffer_bytes: int, buffered_bytes: int, in_flight: int) -> Values:
        """By Kafka's names, times in milliseconds as there."""
        return {
            "record-send-total": self.records_sent,
            "record-retry-total": self.records_retried,
            "request-total": self.requests_sent,
            "outgoing-byte-total": self.batch_bytes.total,
            **in_ms("request-latency", self.latency),
            "batch-size-avg": self.batch_bytes.average,
            "batch-size-max": self.batch_bytes.largest,
            "requests-in-flight": in_flight,
            "buffer-total-bytes": buffer_bytes,
            "buffer-available-bytes": max(buffer_bytes - buffered_bytes, 0),
        }
