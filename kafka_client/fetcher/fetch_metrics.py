"""What a fetcher counts, per answer, and tells by the names of Kafka's `consumer-fetch-manager-metrics`."""

from __future__ import annotations

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed, in_ms


class FetchMetrics:
    """One fetcher's. Times are in seconds; records are counted by the headers of their batches."""

    __slots__ = ("bytes_fetched", "latency", "records_fetched", "requests_sent")

    def __init__(self) -> None:
        self.requests_sent = self.records_fetched = self.bytes_fetched = 0
        self.latency = Windowed()
        """From a request to its answer, the broker's long poll included."""

    def came(self, records: int, size: int) -> None:
        """So many records and bytes of a partition were handed out."""
        self.records_fetched += records
        self.bytes_fetched += size

    def values(self, *, lag_max: int) -> Values:
        """By Kafka's names, times in milliseconds as there."""
        return {
            "fetch-total": self.requests_sent,
            "records-consumed-total": self.records_fetched,
            "bytes-consumed-total": self.bytes_fetched,
            **in_ms("fetch-latency", self.latency),
            "records-lag-max": lag_max,
        }
